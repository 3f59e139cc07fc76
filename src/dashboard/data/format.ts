const number = new Intl.NumberFormat("en");
const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `1,234,567`. */
export function count(value: number): string {
  return number.format(value);
}

/** `1 row`, `2 rows`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${number.format(value)} ${value === 1 ? one : many}`;
}

/** `3.4 MiB`; a dash if it was not measured. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const power = value < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${scaled >= 100 || power === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${units[power]}`;
}

/** `340 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return twoParts(`${Math.floor(seconds / 60)} min`, seconds % 60, "s");
  if (seconds < 86_400) return twoParts(`${Math.floor(seconds / 3600)} h`, Math.floor((seconds % 3600) / 60), "min");
  return twoParts(`${Math.floor(seconds / 86_400)} d`, Math.floor((seconds % 86_400) / 3600), "h");
}

const twoParts = (first: string, rest: number, unit: string) => (rest === 0 ? first : `${first} ${rest} ${unit}`);

/** `now`, `3 min ago`, `in 2 h`. */
export function relative(at: string, nowMs: number): string {
  const ms = nowMs - Date.parse(at);
  const distance = Math.abs(ms);
  if (distance < 10_000) return "now";
  const [amount, unit] =
    distance < 60_000
      ? [Math.floor(distance / 1000), "s"]
      : distance < 3_600_000
        ? [Math.floor(distance / 60_000), "min"]
        : distance < 86_400_000
          ? [Math.floor(distance / 3_600_000), "h"]
          : [Math.floor(distance / 86_400_000), "d"];
  return ms > 0 ? `${amount} ${unit} ago` : `in ${amount} ${unit}`;
}

const exactFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** The time in the local zone and in UTC. */
export function exact(at: string): string {
  return `${exactFormat.format(new Date(at))} · ${at.replace("T", " ").replace(/\.\d+Z$/, "")} UTC`;
}

const halfDayMs = 43_200_000;
const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;
const clockFormat = new Intl.DateTimeFormat("en-GB", clock);
const dayClockFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", ...clock });

/** `14:05:11` in the local zone, with its day unless it is of the last hours. */
export function clockTime(at: string): string {
  const time = new Date(at);
  return (Date.now() - time.getTime() < halfDayMs ? clockFormat : dayClockFormat).format(time);
}

const natural = new Intl.Collator("en", { numeric: true });

/** Compares two names as people order them: `A2` before `A10`. */
export function compareNames(one: string, other: string): number {
  return natural.compare(one, other);
}

/** A commit's hash at the length that the dashboard, the command line and the logs show; empty where there is no commit. */
export function shortCommit(hash: string | null | undefined): string {
  return hash?.slice(0, 8) ?? "";
}

const timeFormat = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const dayOfYear = { day: "numeric", month: "long", hour: "2-digit", minute: "2-digit" } as const;
const dayOfYearFormat = new Intl.DateTimeFormat("en-GB", dayOfYear);

/** `today at 14:05`, `3 December at 14:05`, and with its year if that is another one. */
export function moment(at: string, nowMs: number): string {
  const [time, now] = [new Date(at), new Date(nowMs)];
  if (time.toDateString() === now.toDateString()) return `today at ${timeFormat.format(time)}`;
  return time.getFullYear() === now.getFullYear() ? dayOfYearFormat.format(time) : day(at);
}

const dayFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "short" });

/** `3 December 2026 at 14:05`, in the local zone. */
export function day(at: string): string {
  return dayFormat.format(new Date(at));
}

/** `Control database`, from `control_database`. */
export function capitalized(word: string): string {
  return `${word[0]?.toUpperCase() ?? ""}${word.slice(1)}`.replaceAll("_", " ");
}

/** Makes a slug of a name; empty if no letter of it may be in one. */
export function slugOf(name: string): string {
  const words = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return words.slice(0, 40).replaceAll(/^-+|-+$/g, "");
}

/** Whether a project's name says no more than its slug. */
export function isNamedBySlug({ name, slug }: { readonly name: string; readonly slug: string }): boolean {
  return name.toLowerCase().replaceAll(" ", "-") === slug;
}

export function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

// Control characters and marks that change the direction of text, with which one name could look like another.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Makes invisible characters in tenants' text visible. */
export function visible(text: string): string {
  return text.replaceAll(hidden, (found) => `⟨${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
