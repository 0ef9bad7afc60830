// A runner for the JavaScript SDK, with the line protocol of ../lines.py and, on a broker, kafkajs.
import { createInterface } from "node:readline";
import { CloudEvent, Kafka as Binding } from "cloudevents";
import { Kafka, logLevel } from "kafkajs";

const bytes = (digits) => (digits === null ? null : Buffer.from(digits, "hex"));
const digits = (value) => (value === null || value === undefined ? null : Buffer.from(value).toString("hex"));

// --- reading ---

// kafkajs returns headers as buffers, the SDK expects text: its example converts them like this.
const asText = (headers) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value?.toString() ?? value]));

const decode = (message) => describe(Binding.toEvent({ ...message, headers: asText(message.headers) }));

// The same without the conversion, to find out whether the SDK reads the buffers of kafkajs.
function checked({ id }) {
  if (typeof id !== "string") throw new TypeError("the id is no text");
  return {};
}

function describe(event) {
  const attributes = Object.entries(event)
    .filter(([name, value]) => !["data", "data_base64"].includes(name) && value !== undefined && value !== null)
    .map(([name, value]) => [name, ...typed(value)]);
  return { attributes, data: dataOf(event.data) };
}

function typed(value) {
  if (typeof value === "boolean") return ["Boolean", String(value)];
  if (typeof value === "number") return [Number.isInteger(value) ? "Integer" : "Float", String(value)];
  if (typeof value === "string") return ["String", value];
  if (value instanceof Uint8Array) return ["Binary", Buffer.from(value).toString("base64")];
  return [value.constructor.name, JSON.stringify(value)];
}

function dataOf(data) {
  if (data === undefined) return null;
  if (data instanceof Uint8Array) return { kind: "bytes", hex: digits(data) };
  if (typeof data === "string") return { kind: "text", hex: digits(data) };
  return { kind: "json", hex: digits(JSON.stringify(data)) };
}

// --- writing ---

function build({ attributes, data }) {
  const members = Object.fromEntries(attributes.map(([name, type, text]) => [name, native(type, text)]));
  if (data !== null) members.data = content(data);
  return new CloudEvent(members);
}

function native(type, text) {
  if (type === "Null") return null;
  if (type === "Boolean") return text === "true";
  if (type === "Integer") return Number(text);
  if (type === "Binary") return Buffer.from(text, "base64");
  return text;
}

function content({ kind, hex }) {
  if (kind === "bytes") return bytes(hex);
  return kind === "json" ? JSON.parse(bytes(hex)) : bytes(hex).toString();
}

// The message of the SDK for kafkajs, with the user's key if there is one.
function encode({ event, mode, key }) {
  const made = Binding[mode](build(event));
  return { ...made, key: key === null ? made.key : bytes(key) };
}

// The message that kafkajs accepts: it throws for an undefined value and undefined or null headers.
const isWhole = ({ value, headers }) => value !== undefined && !Object.values(headers).includes(undefined);
const whole = (message) => ({
  ...message,
  value: message.value ?? null,
  headers: Object.fromEntries(Object.entries(message.headers).filter(([, value]) => value !== undefined)),
});

// The bytes of a header or value: kafkajs accepts text and buffers, and throws on other values.
function wire({ key, value, headers }) {
  const pairs = Object.entries(headers).map(([name, value]) => [name, part(value)]);
  return { key: part(key), value: part(value), headers: pairs };
}

function part(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === "string" || Buffer.isBuffer(value)) return digits(value);
  throw new TypeError(`kafkajs takes text and buffers, received type ${typeof value}`);
}

// --- the lines ---

function solve(line) {
  const task = JSON.parse(line);
  if (task.op === "encode") return { record: wire(whole(encode(task))) };
  const headers = {};
  for (const [name, value] of task.record.headers) headers[name] = bytes(value);
  return { event: decode({ key: bytes(task.record.key), value: bytes(task.record.value), headers }) };
}

const attempt = (action) => {
  try {
    return action();
  } catch (error) {
    return { error: `${error.constructor.name}: ${error.message}` };
  }
};

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

async function eachLine(act) {
  for await (const line of createInterface({ input: process.stdin })) say(await act(line));
}

// `raw` is the error of the client for the message that the SDK returns, if it is incomplete.
async function produce(client, topic) {
  const producer = client.producer();
  await producer.connect();
  const send = async (message) => {
    try {
      await producer.send({ topic, messages: [message] });
      return {};
    } catch (error) {
      return { error: `${error.constructor.name}: ${error.message}` };
    }
  };
  await eachLine(async (line) => {
    let message;
    const failed = attempt(() => void (message = encode(JSON.parse(line))));
    if (failed) return failed;
    const raw = isWhole(message) ? null : (await send(message)).error;
    return { ...(await send(whole(message))), raw };
  });
  await producer.disconnect();
}

async function consume(client, topic, count) {
  const consumer = client.consumer({ groupId: "peer" });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((done) => {
    consumer.run({
      eachMessage: async ({ message }) => {
        const raw = attempt(() => checked(Binding.toEvent(message)));
        say({ ...attempt(() => ({ event: decode(message) })), key: digits(message.key), raw: raw.error ?? null });
        if (--count === 0) done();
      },
    });
  });
  await consumer.disconnect();
}

const [command, server, topic, count] = process.argv.slice(2);
const client = () => new Kafka({ brokers: [server], logLevel: logLevel.NOTHING });
if (command === "produce") await produce(client(), topic);
else if (command === "consume") await consume(client(), topic, Number(count));
else await eachLine((line) => attempt(() => solve(line)));
