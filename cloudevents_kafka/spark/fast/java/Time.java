package cloudevents_kafka.spark;

/** Timestamps of RFC 3339 of the years 1000 to 9998, in upper case, without leap seconds. */
final class Time {
    private static final int NONE = Integer.MIN_VALUE;
    private static final byte[] SHAPE = Text.word("0000-00-00T00:00:00");
    private static final long[] POWERS = {1000000, 100000, 10000, 1000, 100, 10, 1};

    private Time() {}

    /** Return the instant in microseconds since 1970, truncated; null if the text is not recognized. */
    static Long micros(byte[] b, int from, int to) {
        if (to - from <= SHAPE.length || !hasShape(b, from)) return null;
        int days = days(number(b, from, 4), number(b, from + 5, 2), number(b, from + 8, 2));
        int hour = number(b, from + 11, 2), minute = number(b, from + 14, 2), second = number(b, from + 17, 2);
        if (days == NONE || hour > 23 || minute > 59 || second > 59) return null;
        int at = from + SHAPE.length;
        long fraction = 0;
        if (b[at] == '.') {
            int first = ++at;
            for (; at < to && Text.isDigit(b[at]); at++) {
                if (at - first < 6) fraction = fraction * 10 + (b[at] - '0');
            }
            if (at == first) return null;
            fraction *= POWERS[Math.min(at - first, 6)];
        }
        int offset = offset(b, at, to);
        if (offset == NONE) return null;
        long minutes = (days * 24L + hour) * 60 + minute - offset;
        return Long.valueOf((minutes * 60 + second) * 1000000 + fraction);
    }

    private static boolean hasShape(byte[] b, int from) {
        for (int n = 0; n < SHAPE.length; n++) {
            byte c = b[from + n];
            if (SHAPE[n] == '0' ? !Text.isDigit(c) : c != SHAPE[n]) return false;
        }
        return true;
    }

    private static int number(byte[] b, int at, int digits) {
        int number = 0;
        for (int n = 0; n < digits; n++) number = number * 10 + (b[at + n] - '0');
        return number;
    }

    /** Return the days since 1970 in the proleptic Gregorian calendar. */
    private static int days(int year, int month, int day) {
        if (year < 1000 || year > 9998 || month < 1 || month > 12 || day < 1 || day > 31) return NONE;
        boolean leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        int length = month == 2 ? (leap ? 29 : 28) : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
        if (day > length) return NONE;
        // Years begin in March, so that the leap day is the last day of its year.
        int years = month > 2 ? year : year - 1;
        int months = month > 2 ? month - 3 : month + 9;
        return years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 719469;
    }

    /** Return the offset in minutes, or NONE if the text is not an offset. */
    private static int offset(byte[] b, int at, int to) {
        if (to - at == 1 && b[at] == 'Z') return 0;
        boolean shape = to - at == 6 && (b[at] == '+' || b[at] == '-') && b[at + 3] == ':'
            && Text.isDigit(b[at + 1]) && Text.isDigit(b[at + 2]) && Text.isDigit(b[at + 4]) && Text.isDigit(b[at + 5]);
        if (!shape) return NONE;
        int hours = number(b, at + 1, 2), minutes = number(b, at + 4, 2);
        if (hours > 23 || minutes > 59) return NONE;
        return (hours * 60 + minutes) * (b[at] == '-' ? -1 : 1);
    }
}
