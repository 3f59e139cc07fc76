/** An error response from the server. `message` is its sentence. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;
  readonly details: readonly { readonly path: string; readonly message: string }[];
  /** Identifies the request in the server's log; null when a proxy removed it. */
  readonly requestId: string | null;
  /** From `Retry-After`, when the server sent it. */
  readonly retryAfterSeconds: number | undefined;
  /** The whole body, including fields that only some errors have. */
  readonly body: Readonly<Record<string, unknown>>;
  constructor(response: Response, body: Readonly<Record<string, unknown>>) {
    super(String(body["error"]));
    this.name = "ApiError";
    this.status = response.status;
    this.code = String(body["code"]);
    this.hint = typeof body["hint"] === "string" ? body["hint"] : undefined;
    this.details = Array.isArray(body["details"]) ? body["details"] : [];
    this.requestId = response.headers.get("x-request-id");
    const seconds = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
    this.retryAfterSeconds = Number.isNaN(seconds) ? undefined : seconds;
    this.body = body;
  }
}

/** No usable response: the server is unreachable, too slow, or not this API. `message` is a sentence for people. */
export class ConnectionError extends Error {
  readonly kind: "network" | "timeout" | "unexpected_answer";
  readonly hint: string | undefined;
  constructor(
    kind: ConnectionError["kind"],
    message: string,
    more: { hint?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.name = "ConnectionError";
    this.kind = kind;
    this.hint = more.hint;
  }
}

/** The call could not be sent: an invalid address, or a parameter that can't be part of a path. */
export class InvalidCall extends Error {
  override readonly name = "InvalidCall";
  readonly hint: string | undefined;
  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}
