package example.granary;

/** Loads silos. */
interface Silos {
    SiloState load(String silo);
}
