// A fair mutex: `acquire` resolves to a function that releases it, once.
export class Mutex {
  #held = false;
  #queue = [];

  acquire() {
    return new Promise((resolve) => {
      const enter = () => {
        this.#held = true;
        resolve(this.#releaser());
      };
      if (this.#held) {
        this.#queue.push(enter);
      } else {
        enter();
      }
    });
  }

  #releaser() {
    let released = false;
    return () => {
      if (released) {
        return;
      }
      released = true;
      this.#held = false;
      this.#queue.shift()?.();
    };
  }
}
