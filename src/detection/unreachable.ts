/** What package managers and their helpers print when the network fails them. */
export const unreachable =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|network (?:timeout|request)|UNABLE_TO_GET_ISSUER_CERT|SELF_SIGNED_CERT/;
