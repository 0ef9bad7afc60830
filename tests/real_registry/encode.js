// Register a schema of Avro, and print values that are encoded with its id, in hex, one a line.
// node encode.js URL SUBJECT, with {"schema": …, "values": […]} on stdin.
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");

async function main([host, subject], { schema, values }) {
  const registry = new SchemaRegistry({ host });
  const { id } = await registry.register(
    { type: SchemaType.AVRO, schema: JSON.stringify(schema) }, { subject });
  for (const value of values) {
    console.log((await registry.encode(id, value)).toString("hex"));
  }
}

let text = "";
process.stdin.on("data", (part) => { text += part; });
process.stdin.on("end", () => main(process.argv.slice(2), JSON.parse(text)));
