package desk;

import java.util.regex.Pattern;

/** Form of VAT numbers; the check digit is verified for German ones (ISO 7064, MOD 11,10). */
final class VatNumber {
    private static final Pattern FORM = Pattern.compile("[A-Z]{2}[A-Z0-9]{8,12}");

    private VatNumber() {}

    static boolean isWellFormed(String number) {
        if (!FORM.matcher(number).matches()) {
            return false;
        }
        return !number.startsWith("DE") || number.matches("DE\\d{9}") && hasGermanCheckDigit(number.substring(2));
    }

    private static boolean hasGermanCheckDigit(String digits) {
        int product = 10;
        for (int i = 0; i < 8; i++) {
            int sum = (digits.charAt(i) - '0' + product) % 10;
            product = 2 * (sum == 0 ? 10 : sum) % 11;
        }
        return (11 - product) % 10 == digits.charAt(8) - '0';
    }
}
