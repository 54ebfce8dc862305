// Runs inside a Node process: begins and ends a CPU profile of its main thread and of its worker threads.
// It uses a session within the process, so that the inspector's port can be shut meanwhile.
((wanted) => {
  const key = Symbol.for("loadlens.stacks");
  const START = [
    ["Profiler.enable", {}],
    ["Profiler.setSamplingInterval", { interval: wanted.interval_us }],
    ["Profiler.start", {}],
  ];
  const WHERE = `require("fs").readlinkSync("/proc/thread-self")`;
  const STOP_ID = 9;

  const begin = () => {
    const session = new (require("inspector").Session)();
    const state = { session, workers: new Map() };
    session.connect();
    for (const [method, params] of START) session.post(method, params);
    const toWorker = (sessionId, id, method, params) =>
      session.post("NodeWorker.sendMessageToWorker", { sessionId, message: JSON.stringify({ id, method, params }) });
    session.on("NodeWorker.attachedToWorker", ({ params: { sessionId } }) => {
      state.workers.set(sessionId, {});
      START.forEach(([method, params]) => toWorker(sessionId, 0, method, params));
      toWorker(sessionId, 1, "Runtime.evaluate", { expression: WHERE, includeCommandLineAPI: true });
    });
    session.on("NodeWorker.detachedFromWorker", ({ params }) => state.workers.delete(params.sessionId));
    session.on("NodeWorker.receivedMessageFromWorker", ({ params }) => {
      const worker = state.workers.get(params.sessionId);
      const { id, result } = JSON.parse(params.message);
      if (worker && id === 1) worker.thread = result?.result?.value ?? "";
      if (worker && id === STOP_ID) worker.profile = result?.profile ?? null;
      state.onAnswer?.();
    });
    session.post("NodeWorker.enable", { waitForDebuggerOnStart: false });
    state.stopWorkers = () => {
      for (const id of state.workers.keys()) toWorker(id, STOP_ID, "Profiler.stop", {});
    };
    state.givesUp = setTimeout(() => { session.disconnect(); delete globalThis[key]; }, wanted.at_most_ms);
    state.givesUp.unref();
    globalThis[key] = state;
  };

  const end = () => new Promise((resolve) => {
    const state = globalThis[key];
    if (!state) { resolve("[]"); return; }
    const threads = [];
    const finish = () => {
      clearTimeout(state.givesUp);
      clearTimeout(late);
      for (const { thread, profile } of state.workers.values()) if (profile) threads.push({ thread, profile });
      state.session.disconnect();
      delete globalThis[key];
      resolve(JSON.stringify(threads));
    };
    const late = setTimeout(finish, wanted.workers_ms);
    state.onAnswer = () => { if ([...state.workers.values()].every((each) => "profile" in each)) finish(); };
    state.session.post("Profiler.stop", (error, result) => {
      if (result) threads.push({ thread: require("fs").readlinkSync("/proc/thread-self"), profile: result.profile });
    });
    state.stopWorkers();
    state.onAnswer();
  });

  return wanted.ends ? end() : begin();
})
