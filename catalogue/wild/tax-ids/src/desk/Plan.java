package desk;

/** What a caller has booked: checks a second, and how many of them at once. */
enum Plan {
    TRIAL(60, 60),
    BUSINESS(600, 900),
    INTERNAL(5000, 5000);

    final int perSecond;
    final int burst;

    Plan(int perSecond, int burst) {
        this.perSecond = perSecond;
        this.burst = burst;
    }
}
