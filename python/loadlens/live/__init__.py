"""Live views: what a person sees while a load or a study runs. They read progress, they never delay it."""
