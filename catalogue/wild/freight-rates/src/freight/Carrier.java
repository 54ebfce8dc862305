package freight;

record Carrier(int id, String name, double fuelFactor) {
}
