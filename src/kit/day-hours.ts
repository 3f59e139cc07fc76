/** Hours of each day, in UTC, which may cross midnight. */
export interface DayHours {
  readonly startHour: number;
  readonly hours: number;
}

/** Returns whether a moment is within the hours; false if there are none. */
export function isWithin(span: DayHours | null, at: Date): boolean {
  return span !== null && (at.getUTCHours() - span.startHour + 24) % 24 < span.hours;
}
