import { styleText } from "node:util";

/** Colours text, or returns it unchanged if colours are off. */
export type Paint = Readonly<Record<Ink, (text: string) => string>>;

const inks = ["bold", "dim", "red", "green", "yellow", "cyan"] as const;
type Ink = (typeof inks)[number];

export function createPaint(coloured: boolean): Paint {
  const brush = (ink: Ink) => (text: string) => (coloured ? styleText(ink, text, { validateStream: false }) : text);
  return Object.fromEntries(inks.map((ink) => [ink, brush(ink)])) as Paint;
}

const inkOfStatus: Readonly<Record<string, Ink>> = {
  active: "green",
  succeeded: "green",
  ready: "green",
  completed: "green",
  verified: "green",
  ok: "green",
  failed: "red",
  warning: "yellow",
  critical: "red",
  fail: "red",
  warn: "yellow",
  deleted: "red",
  timeout: "red",
  missed: "red",
  unknown: "yellow",
  mismatch: "red",
  queued: "yellow",
  running: "yellow",
  pending: "yellow",
  starting: "yellow",
  provisioning: "yellow",
  issuing: "yellow",
  approved: "green",
  denied: "red",
  suspended: "red",
  healthy: "green",
  deploying: "yellow",
  maintenance: "yellow",
  degraded: "yellow",
  crashing: "red",
  down: "red",
  live: "green",
  building: "yellow",
  removing: "yellow",
};

/** Colours a status by how good it is; statuses of finished things are dim. */
export function paintStatus(paint: Paint, status: string): string {
  return paint[inkOfStatus[status] ?? "dim"](status);
}
