'use strict';
const { createHash } = require('node:crypto');
const { stamp } = require('./stamp');

/** Fetch a deed's scan, stamp it, and sign what came out. */
module.exports = async ({ deed, clerk }) => {
  const answer = await fetch(`${process.env.ARCHIVE_URL}/scans/${deed}`);
  if (!answer.ok) throw new Error(`archive: ${answer.status}`);
  const scan = new Uint8Array(await answer.arrayBuffer());
  const stamped = stamp(scan, 192, `certified ${deed} ${clerk}`);
  return { deed, clerk, digest: createHash('sha256').update(stamped).digest('hex') };
};
