/** Matches what package managers and their helpers print if they can't reach the network. */
export const unreachable =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|network (?:timeout|request)|UNABLE_TO_GET_ISSUER_CERT|SELF_SIGNED_CERT/;
