package cloudevents_kafka.spark;

import java.util.Arrays;

/**
 * Timestamps of RFC 3339.
 *
 * A leap second is the last microsecond before it, and a time in the year 0 the first instant of
 * the year 1 in its offset.
 */
final class Time {
    private static final int NO_OFFSET = Integer.MIN_VALUE;
    private static final int LEAP = 60;
    private static final int MINUTES = 24 * 60;
    private static final int MICROS = 6; // the digits of a fraction that an instant has
    private static final int CYCLE = 400; // the calendar repeats after as many years
    private static final int CYCLE_DAYS = 146097;
    private static final byte[] SHAPE = Text.word("0000-00-00T00:00:00");
    private static final long[] POWERS = {1000000, 100000, 10000, 1000, 100, 10, 1};

    private Time() {}

    /** Return the instant in microseconds since 1970, truncated; null if the text is not a timestamp. */
    static Long micros(byte[] b, int from, int to) {
        if (to - from <= SHAPE.length || !hasShape(b, from)) return null;
        int year = number(b, from, 4), month = number(b, from + 5, 2), day = number(b, from + 8, 2);
        int hour = number(b, from + 11, 2), minute = number(b, from + 14, 2), second = number(b, from + 17, 2);
        if (!isDate(year, month, day) || hour > 23 || minute > 59 || second > LEAP) return null;
        int at = from + SHAPE.length;
        long fraction = 0;
        if (b[at] == '.') {
            int first = ++at;
            for (; at < to && Text.isDigit(b[at]); at++) {
                if (at - first < MICROS) fraction = fraction * 10 + (b[at] - '0');
            }
            if (at == first) return null;
            fraction *= POWERS[Math.min(at - first, MICROS)];
        }
        int offset = offset(b, at, to);
        if (offset == NO_OFFSET) return null;
        long minutes = hour * 60 + minute - offset;
        if (second == LEAP) {
            // RFC 3339 5.7: leap seconds are inserted before midnight UTC only
            if (Math.floorMod(minutes, (long) MINUTES) != MINUTES - 1) return null;
            second = 59;
            fraction = 999999;
        }
        if (year == 0) return Long.valueOf((days(1, 1, 1) * (long) MINUTES - offset) * 60 * 1000000);
        minutes += days(year, month, day) * (long) MINUTES;
        return Long.valueOf((minutes * 60 + second) * 1000000 + fraction);
    }

    /** Return whether one timestamp is before another: by its instant, then by what an instant does not have. */
    static boolean isBefore(byte[] one, byte[] other) {
        long first = micros(one, 0, one.length).longValue(), second = micros(other, 0, other.length).longValue();
        return first != second ? first < second : Arrays.compare(rest(one), rest(other)) < 0;
    }

    /** Return the digits below a microsecond, after a ":" all digits of a leap second, the text in the year 0. */
    private static byte[] rest(byte[] b) {
        if (number(b, 0, 4) == 0) return b;
        boolean leap = b[17] == '6';
        int first = SHAPE.length + 1, end = first;
        if (b[SHAPE.length] == '.') {
            while (Text.isDigit(b[end])) end++;
        }
        while (end > first && b[end - 1] == '0') end--;
        if (!leap) first = Math.min(end, first + MICROS);
        byte[] rest = new byte[end - first + (leap ? 1 : 0)];
        if (leap) rest[0] = ':';
        System.arraycopy(b, first, rest, leap ? 1 : 0, end - first);
        return rest;
    }

    private static boolean hasShape(byte[] b, int from) {
        for (int n = 0; n < SHAPE.length; n++) {
            byte c = b[from + n];
            if (SHAPE[n] == '0' ? !Text.isDigit(c) : c != SHAPE[n] && (SHAPE[n] != 'T' || c != 't')) return false;
        }
        return true;
    }

    private static int number(byte[] b, int at, int digits) {
        int number = 0;
        for (int n = 0; n < digits; n++) number = number * 10 + (b[at + n] - '0');
        return number;
    }

    private static boolean isDate(int year, int month, int day) {
        if (month < 1 || month > 12 || day < 1) return false;
        boolean leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        return day <= (month == 2 ? (leap ? 29 : 28) : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31);
    }

    /** Return the days since 1970 in the proleptic Gregorian calendar. */
    private static int days(int year, int month, int day) {
        // Years begin in March, so that the leap day is the last day of its year.
        int years = CYCLE + (month > 2 ? year : year - 1);
        int months = month > 2 ? month - 3 : month + 9;
        return years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 719469 - CYCLE_DAYS;
    }

    /** Return the offset in minutes, or NO_OFFSET if the text is not an offset. */
    private static int offset(byte[] b, int at, int to) {
        if (to - at == 1 && (b[at] == 'Z' || b[at] == 'z')) return 0;
        boolean shape = to - at == 6 && (b[at] == '+' || b[at] == '-') && b[at + 3] == ':'
            && Text.isDigit(b[at + 1]) && Text.isDigit(b[at + 2]) && Text.isDigit(b[at + 4]) && Text.isDigit(b[at + 5]);
        if (!shape) return NO_OFFSET;
        int hours = number(b, at + 1, 2), minutes = number(b, at + 4, 2);
        if (hours > 23 || minutes > 59) return NO_OFFSET;
        return (hours * 60 + minutes) * (b[at] == '-' ? -1 : 1);
    }
}
