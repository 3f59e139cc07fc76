/** Something is wrong that the operator has to change; the message says what, and no stack is shown. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}
