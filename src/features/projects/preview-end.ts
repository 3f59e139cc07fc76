/** When a pinned preview ends. An earlier version of Berth reads it as any other time, and removes nothing. */
const never = new Date("9999-12-31T00:00:00Z");

const hourMs = 3_600_000;

/** Returns when a preview ends whose branch is pushed now, or that is pinned or unpinned now. */
export function previewEnd({ hours }: { readonly hours: number }, stays: boolean): Date {
  return stays ? never : new Date(Date.now() + hours * hourMs);
}

/** Returns when a preview ends; null: it is pinned. */
export function shownEnd(expires_at: string): string | null {
  return Date.parse(expires_at) < never.getTime() ? expires_at : null;
}
