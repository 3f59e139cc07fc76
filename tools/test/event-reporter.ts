import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { TestEvent } from "node:test/reporters";

import { explainError } from "./explain-failure.ts";

/** What a test process reports to the runner, one JSON value per line. */
export type Report =
  | { readonly type: "began"; readonly name: string }
  | { readonly type: "passed"; readonly name: string }
  | { readonly type: "skipped"; readonly name: string; readonly reason: string }
  | { readonly type: "failed"; readonly name: string; readonly error: string }
  /** The last line of a process that ran to its end. */
  | { readonly type: "ended"; readonly isGreen: boolean; readonly processorSeconds: number };

/** The file that names a suite after each test file. */
const importer = join(import.meta.dirname, "import-files.ts");

/** Node requires a reporter as its module's default export. */
// oxlint-disable-next-line import/no-default-export
export default async function* reportEvents(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    const report = reportOf(event);
    if (report !== null) yield `${JSON.stringify(report)}\n`;
  }
}

function reportOf({ type, data }: TestEvent): Report | null {
  if (type === "test:dequeue") return data.type === "suite" ? null : { type: "began", name: nameOf(data) };
  if (type === "test:fail") return failureOf(data);
  if (type === "test:summary") return { type: "ended", isGreen: data.success, processorSeconds: processorSeconds() };
  if (type !== "test:pass") return null;
  const reason = data.skip ?? data.todo;
  // Node.js does not report the tests in a skipped suite, so report the suite itself.
  if (reason === undefined) return data.details.type === "suite" ? null : { type: "passed", name: nameOf(data) };
  return { type: "skipped", name: nameOf(data), reason: typeof reason === "string" ? reason : "" };
}

/** Returns null for a suite that failed only because of its tests, which have their own reports. */
function failureOf(data: Extract<TestEvent, { type: "test:fail" }>["data"]): Report | null {
  const { error } = data.details;
  if ("failureType" in error && error.failureType === "subtestsFailed") return null;
  return { type: "failed", name: nameOf(data), error: explainError(error) };
}

function nameOf({ file, name }: { readonly file?: string; readonly name: string }): string {
  return file === undefined || file === name || file === importer ? name : `${relative(process.cwd(), file)}: ${name}`;
}

/** Returns the CPU seconds of this process and of the children that it has waited for (proc(5): fields 14 to 17, in ticks of 10 ms). */
function processorSeconds(): number {
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) / 100, 0);
}
