// A runner for the Java SDK, with the line protocol of ../lines.py and, on a broker, kafka-clients.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.cloudevents.CloudEvent;
import io.cloudevents.CloudEventData;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.core.data.BytesCloudEventData;
import io.cloudevents.core.message.Encoding;
import io.cloudevents.core.provider.EventFormatProvider;
import io.cloudevents.jackson.JsonCloudEventData;
import io.cloudevents.kafka.CloudEventDeserializer;
import io.cloudevents.kafka.CloudEventSerializer;
import io.cloudevents.kafka.KafkaMessageFactory;
import io.cloudevents.types.Time;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Peer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0) {
            eachLine(Peer::solve);
        } else if (arguments[0].equals("produce")) {
            produce(arguments[1], arguments[2]);
        } else {
            consume(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
        }
    }

    private interface Solver {
        ObjectNode solve(JsonNode task) throws Exception;
    }

    private static void eachLine(Solver solver) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            say(solver, JSON.readTree(line));
        }
    }

    private static void say(Solver solver, JsonNode task) throws Exception {
        ObjectNode answer;
        try {
            answer = solver.solve(task);
        } catch (Exception | StackOverflowError | AssertionError error) {
            Throwable cause = error instanceof SerializationException && error.getCause() != null ? error.getCause() : error;
            answer = JSON.createObjectNode().put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
        OUT.println(JSON.writeValueAsString(answer));
    }

    private static ObjectNode solve(JsonNode task) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        if (task.get("op").asText().equals("decode")) {
            answer.set("event", describe(decode(task.get("record"))));
        } else {
            answer.set("record", encode(task));
        }
        return answer;
    }

    // --- reading ---

    private static CloudEvent decode(JsonNode record) {
        RecordHeaders headers = new RecordHeaders();
        for (JsonNode header : record.get("headers")) {
            headers.add(header.get(0).asText(), bytes(header.get(1)));
        }
        return KafkaMessageFactory.createReader(headers, bytes(record.get("value"))).toEvent();
    }

    private static ObjectNode describe(CloudEvent event) {
        ObjectNode result = JSON.createObjectNode();
        ArrayNode attributes = result.putArray("attributes");
        for (String name : event.getAttributeNames()) {
            add(attributes, name, event.getAttribute(name));
        }
        for (String name : event.getExtensionNames()) {
            add(attributes, name, event.getExtension(name));
        }
        CloudEventData data = event.getData();
        result.putNull("data");
        if (data != null) {
            String kind = data instanceof JsonCloudEventData ? "json" : "bytes";
            result.putObject("data").put("kind", kind).put("hex", HexFormat.of().formatHex(data.toBytes()));
        }
        return result;
    }

    private static void add(ArrayNode attributes, String name, Object value) {
        if (value == null) {
            return;
        }
        ArrayNode attribute = attributes.addArray().add(name);
        if (value instanceof byte[] bytes) {
            attribute.add("Binary").add(Base64.getEncoder().encodeToString(bytes));
        } else if (value instanceof OffsetDateTime time) {
            attribute.add("Timestamp").add(Time.writeTime(time));
        } else {
            attribute.add(typeOf(value)).add(value.toString());
        }
    }

    private static String typeOf(Object value) {
        if (value instanceof URI uri) {
            return uri.isAbsolute() ? "URI" : "URI-reference";
        }
        return value instanceof Boolean ? "Boolean" : value instanceof Number ? "Integer" : "String";
    }

    // --- writing ---

    private static ObjectNode encode(JsonNode task) throws Exception {
        var writer = KafkaMessageFactory.createWriter("topic", bytes(task.get("key")));
        CloudEvent event = build(task.get("event"));
        ProducerRecord<byte[], byte[]> made =
            task.get("mode").asText().equals("binary")
                ? writer.writeBinary(event)
                : writer.writeStructured(event, mediaType(task));
        ObjectNode record = JSON.createObjectNode().put("key", digits(made.key())).put("value", digits(made.value()));
        ArrayNode headers = record.putArray("headers");
        for (Header header : made.headers()) {
            headers.addArray().add(header.key()).add(digits(header.value()));
        }
        return record;
    }

    private static String mediaType(JsonNode task) {
        return "application/cloudevents+" + task.get("format").asText();
    }

    private static CloudEvent build(JsonNode event) throws Exception {
        CloudEventBuilder builder = CloudEventBuilder.v1();
        for (JsonNode attribute : event.get("attributes")) {
            set(builder, attribute.get(0).asText(), attribute.get(1).asText(), attribute.get(2).asText());
        }
        JsonNode data = event.get("data");
        if (!data.isNull()) {
            byte[] bytes = bytes(data.get("hex"));
            boolean json = data.get("kind").asText().equals("json");
            builder.withData(json ? JsonCloudEventData.wrap(JSON.readTree(bytes)) : BytesCloudEventData.wrap(bytes));
        }
        return builder.build();
    }

    private static void set(CloudEventBuilder builder, String name, String type, String text) {
        switch (name) {
            case "specversion" -> { }
            case "id" -> builder.withId(text);
            case "source" -> builder.withSource(URI.create(text));
            case "type" -> builder.withType(text);
            case "datacontenttype" -> builder.withDataContentType(text);
            case "dataschema" -> builder.withDataSchema(URI.create(text));
            case "subject" -> builder.withSubject(text);
            case "time" -> builder.withTime(Time.parseTime(text));
            default -> extend(builder, name, type, text);
        }
    }

    private static void extend(CloudEventBuilder builder, String name, String type, String text) {
        switch (type) {
            case "Boolean" -> builder.withExtension(name, Boolean.valueOf(text));
            case "Integer" -> builder.withExtension(name, Integer.valueOf(text));
            case "Binary" -> builder.withExtension(name, Base64.getDecoder().decode(text));
            case "URI", "URI-reference" -> builder.withExtension(name, URI.create(text));
            case "Timestamp" -> builder.withExtension(name, Time.parseTime(text));
            default -> builder.withExtension(name, text);
        }
    }

    // --- a real broker: the SDK's own serializer and deserializer ---

    private static void produce(String servers, String topic) throws Exception {
        Map<String, KafkaProducer<byte[], CloudEvent>> producers = new HashMap<>();
        eachLine(task -> {
            String mode = task.get("mode").asText();
            var producer = producers.computeIfAbsent(mode + task.get("format"), name -> producer(servers, mode, task));
            producer.send(new ProducerRecord<>(topic, bytes(task.get("key")), build(task.get("event")))).get();
            return JSON.createObjectNode();
        });
        producers.values().forEach(KafkaProducer::close);
    }

    private static KafkaProducer<byte[], CloudEvent> producer(String servers, String mode, JsonNode task) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", servers));
        settings.put("cloudevents.serializer.encoding", mode.equals("binary") ? Encoding.BINARY : Encoding.STRUCTURED);
        if (!mode.equals("binary")) {
            settings.put("cloudevents.serializer.event_format", EventFormatProvider.getInstance().resolveFormat(mediaType(task)));
        }
        CloudEventSerializer serializer = new CloudEventSerializer();
        serializer.configure(settings, false);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), serializer);
    }

    private static void consume(String servers, String topic, int count) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "max.poll.records", 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new CloudEventDeserializer())) {
            consumer.assign(List.of(partition));
            for (long offset = 0; offset < count; offset++) {
                consumer.seek(partition, offset); // after the previous record, even if it was refused
                say(task -> next(consumer), null);
            }
        }
    }

    private static ObjectNode next(KafkaConsumer<byte[], CloudEvent> consumer) {
        for (int patience = 0; patience < 20; patience++) {
            for (ConsumerRecord<byte[], CloudEvent> record : consumer.poll(Duration.ofSeconds(1))) {
                if (record.value() == null) {
                    throw new IllegalStateException("the event is null: a null value never reaches the deserializer");
                }
                ObjectNode answer = JSON.createObjectNode().put("key", digits(record.key()));
                answer.set("event", describe(record.value()));
                return answer;
            }
        }
        throw new IllegalStateException("no record in 20 seconds");
    }

    // --- bytes ---

    private static byte[] bytes(JsonNode digits) {
        return digits == null || digits.isNull() ? null : HexFormat.of().parseHex(digits.asText());
    }

    private static String digits(byte[] bytes) {
        return bytes == null ? null : HexFormat.of().formatHex(bytes);
    }
}
