/**
 * HTTP requests to addresses that tenants choose. An address is resolved once and exactly that address is connected to. Loopback, private,
 * link-local and metadata addresses are refused unless the operator allows them. Redirects are an answer and are not followed.
 */
export interface OutgoingHttp {
  /** Sends a small body and reads the beginning of the answer. What the other side does wrong is an outcome; never rejects for it. */
  post(request: OutgoingRequest, signal: AbortSignal): Promise<OutgoingOutcome>;
}

export interface OutgoingRequest {
  /** `http://` or `https://`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** For look-up, connection and answer together. */
  readonly timeoutMs: number;
  /** How much of the answer is read; the rest is not waited for. */
  readonly excerptBytes: number;
}

/** `reason` is a sentence for the tenant and repeats no part of the address. */
export type OutgoingOutcome =
  | { readonly outcome: "answered"; readonly status: number; readonly excerpt: string }
  | { readonly outcome: "failed"; readonly reason: string };
