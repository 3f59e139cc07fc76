/** The operator has to change something before Berth can start. The message says what; no stack is printed. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}
