package harbour;

/** The plan of the day. */
final class BerthPlan implements Planner {
    private final Quays quays = new Quays();
    private final SurveyClient survey;

    BerthPlan(SurveyClient survey) {
        this.survey = survey;
    }

    @Override
    public synchronized Allocation allocate(Vessel vessel) {
        String quay = quays.propose();
        double depth = survey.depthAt(quay);
        if (depth < vessel.draught()) {
            quay = quays.propose();
        }
        return quays.place(quay, vessel, depth);
    }

    @Override
    public synchronized int size() {
        return quays.size();
    }
}
