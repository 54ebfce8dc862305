package freight;

/** What a carrier would charge for a consignment. */
record Quote(Rate rate, double price, String reference, Double co2) {
}
