package cloudevents_kafka.spark;

import java.util.Arrays;
import java.util.HashSet;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A catalog of Spark with the functions {@code read}, {@code coalesce}, each also for lenient reading,
 * {@code write}, {@code few}, {@code is_new}, {@code foreign} and {@code fits}.
 *
 * Spark compiles calls of their static methods {@code invoke} into its own code. The types of
 * their columns are options of the catalog, in JSON, which, unlike DDL, does not depend on the
 * settings of the session.
 */
public final class Functions implements FunctionCatalog {
    private String name;
    private String row;
    private String wire;

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.row = options.get("row");
        this.wire = options.get("wire");
    }

    public String name() {
        return name;
    }

    public Identifier[] listFunctions(String[] namespace) {
        if (namespace.length > 0) return new Identifier[0];
        return new Identifier[] {
            Identifier.of(namespace, "read"), Identifier.of(namespace, "read_lenient"),
            Identifier.of(namespace, "coalesce"), Identifier.of(namespace, "coalesce_lenient"),
            Identifier.of(namespace, "few"), Identifier.of(namespace, "is_new"),
            Identifier.of(namespace, "foreign"), Identifier.of(namespace, "write"),
            Identifier.of(namespace, "fits"),
        };
    }

    public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
        if (identifier.namespace().length == 0) {
            if ("read".equals(identifier.name())) return new Read("read", DataType.fromJson(row));
            if ("read_lenient".equals(identifier.name())) return new ReadLenient(lenient(row));
            if ("write".equals(identifier.name())) return new Write();
            if ("few".equals(identifier.name())) return new Few();
            if ("is_new".equals(identifier.name())) return new IsNew();
            if ("foreign".equals(identifier.name())) return new Foreign();
            if ("fits".equals(identifier.name())) return new Fits();
            if ("coalesce".equals(identifier.name())) {
                return new Coalesce("coalesce", DataType.fromJson(row), DataType.fromJson(wire));
            }
            if ("coalesce_lenient".equals(identifier.name())) {
                return new Coalesce("coalesce_lenient", lenient(row), lenient(wire));
            }
        }
        throw new NoSuchFunctionException(identifier);
    }

    /** Return a type of an event with the column of what lenient reading accepts. */
    private static DataType lenient(String type) {
        StructType problem = new StructType().add("attribute", DataTypes.StringType)
            .add("rule", DataTypes.StringType).add("clause", DataTypes.StringType)
            .add("value", DataTypes.StringType).add("value_bytes", DataTypes.BinaryType);
        return ((StructType) DataType.fromJson(type)).add("tolerated", DataTypes.createArrayType(problem));
    }

    /** Return the type of a record's headers. */
    private static DataType headersType() {
        StructField[] header = {
            DataTypes.createStructField("key", DataTypes.StringType, true),
            DataTypes.createStructField("value", DataTypes.BinaryType, true),
        };
        return DataTypes.createArrayType(DataTypes.createStructType(header));
    }

    /** A function of events; Spark finds its code, a static method {@code invoke}, in the class itself. */
    private abstract static class Function implements UnboundFunction, ScalarFunction {
        private final String name;
        private final DataType result;

        Function(String name, DataType result) {
            this.name = name;
            this.result = result;
        }

        public String name() {
            return name;
        }

        public String canonicalName() {
            return "cloudevents_kafka." + name;
        }

        public BoundFunction bind(StructType input) {
            return this;
        }

        public DataType resultType() {
            return result;
        }
    }

    /** {@code read(value, headers, left, known)}: see {@link Reader#read}. */
    public static class Read extends Function {
        Read(String name, DataType result) {
            super(name, result);
        }

        public static InternalRow invoke(byte[] value, ArrayData headers, UTF8String left, UTF8String known) {
            return headers == null ? null : Reader.read(value, headers, Extensions.of(left, known), null);
        }

        public String description() {
            return name() + "(value, headers, left, known): the event of a record, null for those left to Python";
        }

        public DataType[] inputTypes() {
            return new DataType[] {
                DataTypes.BinaryType, headersType(), DataTypes.StringType, DataTypes.StringType,
            };
        }
    }

    /** {@code read_lenient(value, headers, left, known, rules)}: the same, lenient; see {@link Rules}. */
    public static final class ReadLenient extends Read {
        ReadLenient(DataType result) {
            super("read_lenient", result);
        }

        public static InternalRow invoke(byte[] value, ArrayData headers, UTF8String left, UTF8String known, UTF8String rules) {
            return Reader.read(value, headers, Extensions.of(left, known), Rules.of(rules));
        }

        public DataType[] inputTypes() {
            DataType[] types = (DataType[]) Arrays.copyOf(super.inputTypes(), 5);
            types[4] = DataTypes.StringType;
            return types;
        }
    }

    /**
     * {@code coalesce(read, decoded)}: the first that is not null.
     *
     * Their types have the same layout: the time is a timestamp in one, its number of microseconds
     * in the other.
     */
    public static final class Coalesce extends Function {
        private final DataType[] types;

        Coalesce(String name, DataType row, DataType wire) {
            super(name, row);
            types = new DataType[] {row, wire};
        }

        public static InternalRow invoke(InternalRow read, InternalRow decoded) {
            return read == null ? decoded : read;
        }

        public String description() {
            return name() + "(read, decoded): the first that is not null";
        }

        public DataType[] inputTypes() {
            return types;
        }
    }

    /** {@code write(attributes, ..., extensions, data, kind, structured, left, known)}: see {@link Writer#write}. */
    public static final class Write extends Function {
        Write() {
            super("write", new StructType().add("value", DataTypes.BinaryType).add("headers", headersType()));
        }

        public static InternalRow invoke(
            UTF8String specversion, UTF8String id, UTF8String source, UTF8String type, UTF8String contentType,
            UTF8String schema, UTF8String subject, UTF8String time, ArrayData extensions, byte[] data,
            UTF8String kind, boolean structured, UTF8String left, UTF8String known
        ) {
            Extensions table = Extensions.of(left, known);
            if (extensions == null || structured && !table.readsJson) return null;
            UTF8String[] core = {specversion, id, source, type, contentType, schema, subject, time};
            return Writer.write(core, extensions, data, kind, structured, table);
        }

        public String description() {
            return "write(attributes, ..., extensions, data, kind, structured, left, known): the value and the "
                + "headers of a record, null for rows left to Python";
        }

        public DataType[] inputTypes() {
            DataType[] types = new DataType[14];
            Arrays.fill(types, DataTypes.StringType);
            types[8] = DataTypes.createArrayType(new StructType().add("key", DataTypes.StringType)
                .add("value", DataTypes.StringType).add("type", DataTypes.StringType));
            types[9] = DataTypes.BinaryType;
            types[11] = DataTypes.BooleanType;
            return types;
        }
    }

    /** {@code few(text, bytes)}: the texts of a task until they have more than these bytes, then null. */
    public static final class Few extends Function {
        private static final ThreadLocal LEFT = new ThreadLocal();

        Few() {
            super("few", DataTypes.StringType);
        }

        public static UTF8String invoke(UTF8String text, int bytes) {
            if (text == null) return null;
            TaskContext task = TaskContext.get();
            long attempt = task == null ? -1 : task.taskAttemptId();
            long[] left = (long[]) LEFT.get(); // the task, and its bytes
            if (left == null || left[0] != attempt) {
                left = new long[] {attempt, bytes};
                LEFT.set(left);
            }
            left[1] -= text.numBytes();
            return left[1] < 0 ? null : text;
        }

        public String description() {
            return "few(text, bytes): the texts of a task until they have more than these bytes, then null";
        }

        public DataType[] inputTypes() {
            return new DataType[] {DataTypes.StringType, DataTypes.IntegerType};
        }

        public boolean isDeterministic() {
            return false;
        }
    }

    /**
     * {@code is_new(kind, code, most)}: whether a task has not had a code of this kind before; false after
     * so many different ones.
     */
    public static final class IsNew extends Function {
        private static final int KINDS = 8;
        private static final ThreadLocal TASK = new ThreadLocal();
        private static final ThreadLocal CODES = new ThreadLocal();

        IsNew() {
            super("is_new", DataTypes.BooleanType);
        }

        public static boolean invoke(int kind, long code, int most) {
            TaskContext task = TaskContext.get();
            Long attempt = Long.valueOf(task == null ? -1 : task.taskAttemptId());
            HashSet[] codes = (HashSet[]) CODES.get();
            if (codes == null || !attempt.equals(TASK.get())) {
                codes = new HashSet[KINDS];
                TASK.set(attempt);
                CODES.set(codes);
            }
            if (codes[kind] == null) codes[kind] = new HashSet();
            return codes[kind].size() < most && codes[kind].add(Long.valueOf(code));
        }

        public String description() {
            return "is_new(kind, code, most): whether a task has not had a code; false after so many";
        }

        public DataType[] inputTypes() {
            return new DataType[] {DataTypes.IntegerType, DataTypes.LongType, DataTypes.IntegerType};
        }

        public boolean isDeterministic() {
            return false;
        }
    }

    /** {@code foreign(headers)}: the headers that are not of an event, null if there are none. */
    public static final class Foreign extends Function {
        private static final UTF8String PREFIX = UTF8String.fromString("ce_");
        private static final UTF8String CONTENT_TYPE = UTF8String.fromString("content-type");

        Foreign() {
            super("foreign", headersType());
        }

        public static ArrayData invoke(ArrayData headers) {
            if (headers == null) return null;
            Object[] found = null;
            int count = 0;
            for (int i = 0; i < headers.numElements(); i++) {
                if (headers.isNullAt(i)) continue;
                InternalRow header = headers.getStruct(i, 2);
                UTF8String name = header.getUTF8String(0);
                if (name == null || name.startsWith(PREFIX) || name.equals(CONTENT_TYPE)) continue;
                if (found == null) found = new Object[headers.numElements() - i];
                found[count++] = header;
            }
            return found == null ? null : new GenericArrayData(Arrays.copyOf(found, count));
        }

        public String description() {
            return "foreign(headers): the headers that are not of an event, null if there are none";
        }

        public DataType[] inputTypes() {
            return new DataType[] {headersType()};
        }
    }

    /** {@code fits(payload, shape)}: whether Spark reads a payload whole, see {@link Shapes}; false without a payload. */
    public static final class Fits extends Function {
        Fits() {
            super("fits", DataTypes.BooleanType);
        }

        public static boolean invoke(byte[] payload, UTF8String shape) {
            return payload != null && Shapes.fits(payload, shape);
        }

        public String description() {
            return "fits(payload, shape): whether Spark reads a payload whole";
        }

        public DataType[] inputTypes() {
            return new DataType[] {DataTypes.BinaryType, DataTypes.StringType};
        }
    }
}
