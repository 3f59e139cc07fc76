/** The headers of every answer of the control port, unless a page sets its own: nothing is stored, framed, sniffed, or told to other sites. */
export const securityHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
} as const;
