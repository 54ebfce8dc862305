'use strict';

/** The state of each lift of an area, from the lift control's own server. */
async function liftStates(area) {
  const answer = await fetch(`${process.env.LIFT_CONTROL}/areas/${area}/lifts`);
  if (!answer.ok) throw new Error(`lift control: ${answer.status}`);
  return answer.json();
}

module.exports = { liftStates };
