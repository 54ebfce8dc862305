// What tests of the page ask of it; tests/end_to_end/browsing.py evaluates this object in a tab.
({
  /** True once the screen has its heading and what `selector` names, and every chart in sight a canvas. */
  isDrawn(selector) {
    const plots = [...document.querySelectorAll(".plot")].filter((plot) => {
      const box = plot.getBoundingClientRect();
      return box.height > 0 && box.top < innerHeight && box.bottom > 0;
    });
    const hasAll = ["main h1", `main ${selector}`].every((each) => document.querySelector(each));
    return hasAll && plots.every((plot) => plot.querySelector("canvas"));
  },

  /** Count the coloured pixels in the left part of a chart's plot. */
  coloured(chart, until) {
    const canvas = document.querySelector(`#chart-${chart} canvas`);
    const { width, height } = canvas;
    const left = Math.round(52 * devicePixelRatio);
    const { data } = canvas.getContext("2d").getImageData(left, 0, Math.round((width - left) * until), height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
      const [r, g, b, a] = data.slice(i, i + 4);
      if (a > 128 && Math.max(r, g, b) - Math.min(r, g, b) > 60) count += 1;
    }
    return count;
  },

  /**
   * Where blocks begin and how wide they are, as far as fonts do not decide it, and what is wrong on any machine:
   * something sticks out of the page, text is cut off, blocks lie on each other.
   */
  layout() {
    const faults = [];
    const width = document.documentElement.clientWidth;
    const whole = document.documentElement.scrollWidth;
    if (whole > width) faults.push(`the page is ${whole} px wide`);
    const isShown = (element) => element.getClientRects().length > 0 && !element.closest(".said, .skip");
    for (const element of document.querySelectorAll("main *, #bar *")) {
      if (!isShown(element) || element.closest(".scroll, .plot")) continue;
      const box = element.getBoundingClientRect();
      const name = `${element.tagName} ${element.className} "${element.textContent.slice(0, 30)}"`;
      if (box.right > width + 1 || box.left < -1) faults.push(`${name} is from ${box.left} to ${box.right}`);
      const { overflowX, textOverflow } = getComputedStyle(element);
      const mayCut = textOverflow !== "ellipsis" && ["hidden", "clip"].includes(overflowX);
      if (mayCut && element.scrollWidth > element.clientWidth + 1) faults.push(`${name} is cut off`);
    }
    const boxes = (selector) =>
      [...document.querySelectorAll(selector)].filter(isShown).map((element) => element.getBoundingClientRect());
    const overlap = (a, b) =>
      a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    for (const group of [".charts > *", ".figures > div", "main section"]) {
      const found = boxes(group);
      if (found.some((a, i) => found.slice(i + 1).some((b) => overlap(a, b)))) faults.push(`${group} overlap`);
    }
    const placed = (selector) => [
      ...new Set(boxes(selector).map((box) => `${Math.round(box.left)}+${Math.round(box.width)}`)),
    ];
    const titles = [...document.querySelectorAll("h2, .chart h3")].filter(isShown);
    return {
      faults,
      titles: titles.map((element) => element.textContent.replace(/[:,].*/, "")),
      charts: placed(".charts > *"),
      figures: placed(".figures > div"),
      sections: placed("main section"),
    };
  },
})
