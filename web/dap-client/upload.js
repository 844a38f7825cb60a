// Uploads measurements by @divviup/dap, somebody else's client of DAP-09: `node upload.js < upload.json`.
//
// The input is {"task": …, "measurements": […]}, with a task as that client's `Task` takes it. Each measurement is
// uploaded in a report of its own; at the end the number of reports is written. A refusal ends it with its short type.

import { text } from "node:stream/consumers";
import { Task } from "@divviup/dap";

const { task, measurements } = JSON.parse(await text(process.stdin));
const client = new Task(task);
try {
  for (const measurement of measurements) await client.sendMeasurement(measurement);
} catch (error) {
  process.stderr.write(`${error.shortType ?? error.message}\n`);
  process.exit(1);
}
process.stdout.write(`${measurements.length}\n`);
