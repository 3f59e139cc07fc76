const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the timestamp that a parameter means, in UTC with milliseconds; a duration counts back from now. */
export function instantOf(text: string, now: Date): string {
  const duration = /^(\d+)([smhd])$/.exec(text);
  const ms = duration
    ? now.getTime() - Number(duration[1]) * unitMs[duration[2] as keyof typeof unitMs]
    : Date.parse(text);
  return new Date(ms).toISOString();
}
