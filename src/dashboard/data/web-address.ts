/** Returns an address that a browser may follow: of the web, or a path of this platform; undefined for any other text of another system. */
export function webAddress(text: string): string | undefined {
  return /^(?:https?:\/\/|\/(?![/\\]))/i.test(text) ? text : undefined;
}
