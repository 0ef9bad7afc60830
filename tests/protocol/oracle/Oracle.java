// Apache Kafka's own reading and writing of messages, behind lines on standard input and output.
//
//   encode <message> <version> <JSON>   the bytes in hex, "-" for none
//   again <message> <version> <hex>     reads the bytes and writes what it read, in hex
//   decode <message> <version> <hex>    reads the bytes and writes JSON, without records
//   errors                              a line of code, name and whether it is retriable for each error
//   varint <number> | varlong <number>  the zigzag bytes; unsigned <number> the others of 32 bits
//
// <message> is a definition's name such as MetadataRequest. Answers are one line; "ERROR ..." where it fails.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.stream.Collectors;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

public class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            out.println(answer(line.split(" ", 4)));
        }
    }

    static String answer(String[] asked) {
        try {
            switch (asked[0]) {
                case "errors": return errors();
                case "varint": case "varlong": case "unsigned": return varint(asked[0], Long.parseLong(asked[1]));
                default: return message(asked[0], asked[1], Short.parseShort(asked[2]), asked[3]);
            }
        } catch (InvocationTargetException error) {
            return "ERROR " + String.valueOf(error.getCause()).replace('\n', ' ');
        } catch (Exception error) {
            return "ERROR " + String.valueOf(error).replace('\n', ' ');
        }
    }

    static String message(String what, String name, short version, String input) throws Exception {
        Class<?> data = Class.forName("org.apache.kafka.common.message." + name + "Data");
        Class<?> converter = Class.forName(data.getName() + "JsonConverter");
        if (what.equals("encode")) {
            return hex(converter.getMethod("read", JsonNode.class, short.class)
                .invoke(null, JSON.readTree(input), version), version);
        }
        byte[] bytes = input.equals("-") ? new byte[0] : HexFormat.of().parseHex(input);
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Object message = data.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            return "ERROR " + buffer.remaining() + " bytes are left over";
        }
        return what.equals("again")
            ? hex(message, version)
            : converter.getMethod("write", data, short.class).invoke(null, message, version).toString();
    }

    static String hex(Object input, short version) {
        Message message = (Message) input;
        ObjectSerializationCache cache = new ObjectSerializationCache();
        byte[] bytes = new byte[message.size(cache, version)];
        message.write(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), cache, version);
        return bytes.length == 0 ? "-" : HexFormat.of().formatHex(bytes);
    }

    static String varint(String what, long number) {
        ByteBuffer buffer = ByteBuffer.allocate(10);
        ByteBufferAccessor writer = new ByteBufferAccessor(buffer);
        switch (what) {
            case "varint": writer.writeVarint((int) number); break;
            case "varlong": writer.writeVarlong(number); break;
            default: writer.writeUnsignedVarint((int) number);
        }
        return HexFormat.of().formatHex(buffer.array(), 0, buffer.position());
    }

    static String errors() {
        return Arrays.stream(Errors.values())
            .map(error -> error.code() + "," + error + "," + (error.exception() instanceof RetriableException))
            .collect(Collectors.joining(" "));
    }
}
