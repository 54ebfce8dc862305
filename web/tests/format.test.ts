import assert from "node:assert/strict";
import test from "node:test";

import { clock, count, duration, scale, withUnit } from "../src/format.ts";
import expected from "./numbers.json";

test("a value has the text that the report gives it", () => {
  for (const { value, unit, text } of expected.values) assert.equal(withUnit(value, unit), text, `${value} ${unit}`);
});

test("a duration and a count have the text that the report gives them", () => {
  for (const { seconds, text } of expected.durations) assert.equal(duration(seconds), text, String(seconds));
  for (const { value, text } of expected.counts) assert.equal(count(value), text, String(value));
});

test("the median chooses the unit of a block", () => {
  assert.equal(scale("s", [0.002, 0.003, 4]).name, "ms");
  assert.equal(scale("s", [null, 0, undefined]).name, "ms"); // nothing to choose by
});

test("a missing value is said, not drawn as zero", () => {
  assert.equal(withUnit(null, "s"), "not measured");
  assert.equal(withUnit(Number.NaN, "s"), "not measured");
});

test("a moment is read like a clock", () => {
  assert.deepEqual([7, 60, 725, 3725, -5].map(clock), ["7 s", "1:00", "12:05", "1:02:05", "−5 s"]);
});
