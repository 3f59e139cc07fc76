import { useEffect, useRef } from "react";
import { Input, Select } from "../../ui/field.tsx";

export interface TimeRange {
  /** An instant, or a time before now such as `15m`; without it, the newest lines. */
  readonly since?: string;
  /** An instant; without it, the log is followed. */
  readonly until?: string;
}

const presets = [
  ["15m", "Last 15 minutes"],
  ["1h", "Last hour"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
] as const;
const hourMs = 3_600_000;

/** Chooses the time that a log shows: the newest lines, the last minutes or hours, or from one instant to another. */
export function TimeRangeControl({
  range,
  onRange,
}: {
  readonly range: TimeRange;
  readonly onRange: (range: TimeRange) => void;
}) {
  const { since, until } = range;
  const isCustom = until !== undefined;
  // The address changes a moment after a choice, and the next choice must not begin at the range of before.
  const chosen = useRef<TimeRange>({});
  useEffect(() => {
    chosen.current = { ...(since !== undefined && { since }), ...(until !== undefined && { until }) };
  }, [since, until]);
  const choose = (value: string) => {
    if (value === "") onRange({});
    else if (value !== "custom") onRange({ since: value });
    else onRange({ since: new Date(Date.now() - hourMs).toISOString(), until: new Date().toISOString() });
  };
  const set = (name: "since" | "until", value: string) => {
    if (value === "") return;
    chosen.current = { ...chosen.current, [name]: new Date(value).toISOString() };
    onRange(chosen.current);
  };
  return (
    <>
      <Select
        aria-label="Time"
        className="max-w-40"
        value={isCustom ? "custom" : (since ?? "")}
        onChange={(event) => choose(event.target.value)}
      >
        <option value="">Newest lines</option>
        {presets.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
        <option value="custom">From … to …</option>
      </Select>
      {isCustom && (
        <>
          {(["since", "until"] as const).map((name) => (
            <Input
              key={name}
              type="datetime-local"
              step={1}
              aria-label={name === "since" ? "From" : "To"}
              className="max-w-52"
              value={localTime(range[name])}
              onChange={(event) => set(name, event.target.value)}
            />
          ))}
        </>
      )}
    </>
  );
}

/** Returns an instant in the format of an input for local time. */
function localTime(at: string | undefined): string {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return "";
  const offsetMs = new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - offsetMs).toISOString().slice(0, 19);
}
