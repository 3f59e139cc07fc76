/** The levels of log lines, the worst first. */
export const logLevels = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];

const names: Readonly<Record<LogLevel, string>> = {
  error: "error|err|fatal|panic|critical|crit|alert|emergency|emerg|severe",
  warn: "warning|warn",
  info: "information|info|notice",
  debug: "debug|trace|verbose",
};
const levels = new Map(logLevels.flatMap((level) => names[level].split("|").map((name) => [name, level] as const)));
const anyName = [...levels.keys()].join("|");

const inJson = /"(?:level|severity|lvl)"\s*:\s*(?:"(\w+)"|(\d+))/i;
const inPairs = /\b(?:level|severity|lvl)=["']?(\w+)/i;
// Alone only in capitals: "no error so far" is a sentence.
const inCapitals = new RegExp(`(?<![\\w.-])(${anyName.toUpperCase()})(?![\\w.-])`);
const marked = new RegExp(`\\[(${anyName})\\]|(?<![\\w.-])(${anyName}):`, "i");
const thrown = /^\s*(?:uncaught |[\w.]*(?:Error|Exception)(?::|$)|Traceback \()/;
const plainBytes = 120;

/** Returns the level that a line names: in a field of JSON or of `key=value` pairs, or as a word near its beginning; null if it names none. */
export function levelOf(text: string): LogLevel | null {
  if (/^\s*\{/.test(text)) {
    const [, name, number] = inJson.exec(text) ?? [];
    return number === undefined ? named(name) : levelOfNumber(Number(number));
  }
  const [, paired] = inPairs.exec(text) ?? [];
  if (named(paired) !== null) return named(paired);
  // Without the codes of colours.
  const head = text.slice(0, plainBytes).replaceAll(/\u001b\[[\d;]*m/g, "");
  const [, inBrackets, beforeColon] = marked.exec(head) ?? [];
  const found = inCapitals.exec(head)?.[1] ?? inBrackets ?? beforeColon;
  return found === undefined && thrown.test(head) ? "error" : named(found);
}

/** Returns whether a line's level is the wanted one or worse. */
export function isAtLeast(level: LogLevel | null, wanted: LogLevel): boolean {
  return level !== null && logLevels.indexOf(level) <= logLevels.indexOf(wanted);
}

const named = (name: string | undefined): LogLevel | null => levels.get(name?.toLowerCase() ?? "") ?? null;

/** Pino counts 10 to 60, syslog 7 to 0. */
function levelOfNumber(number: number): LogLevel {
  if (number < 10) return number <= 3 ? "error" : number === 4 ? "warn" : number === 7 ? "debug" : "info";
  return number >= 50 ? "error" : number >= 40 ? "warn" : number >= 30 ? "info" : "debug";
}
