package harbour;

/** The plan of the day; the survey is asked before the plan is touched. */
final class SurveyedPlan implements Planner {
    private final Quays quays = new Quays();
    private final SurveyClient survey;

    SurveyedPlan(SurveyClient survey) {
        this.survey = survey;
    }

    @Override
    public Allocation allocate(Vessel vessel) {
        String proposed;
        synchronized (quays) {
            proposed = quays.propose();
        }
        double depth = survey.depthAt(proposed);
        synchronized (quays) {
            String quay = depth < vessel.draught() ? quays.propose() : proposed;
            return quays.place(quay, vessel, depth);
        }
    }

    @Override
    public int size() {
        synchronized (quays) {
            return quays.size();
        }
    }
}
