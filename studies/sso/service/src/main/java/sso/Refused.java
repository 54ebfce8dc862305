package sso;

import org.springframework.http.HttpStatus;

/** A request that is not done, and how it is answered. */
class Refused extends RuntimeException {

    final HttpStatus status;

    Refused(HttpStatus status, String why) {
        super(why, null, false, false); // an answer, not an event: no stack is walked for it
        this.status = status;
    }

    static Refused late() {
        return new Refused(HttpStatus.SERVICE_UNAVAILABLE, "took too long");
    }

    static Refused unknown(String what) {
        return new Refused(HttpStatus.NOT_FOUND, "no such " + what);
    }

    /** The text, if there is one that fits. */
    static String unlessText(String name, String text, int longest) {
        if (text == null || text.isBlank() || text.length() > longest) {
            throw new Refused(HttpStatus.UNPROCESSABLE_ENTITY, name + " must have 1 to " + longest + " characters");
        }
        return text;
    }

    /** The number, if there is one. */
    static long unlessNumber(String name, Long number) {
        if (number == null) {
            throw new Refused(HttpStatus.UNPROCESSABLE_ENTITY, name + " must be a number");
        }
        return number;
    }
}
