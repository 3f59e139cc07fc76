/**
 * Addresses behind which a cloud answers every machine's programs with that machine's credentials: link-local (nearly all clouds), Azure's
 * WireServer and Alibaba's.
 */
export const closedNetworks: readonly string[] = ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32"];

/** The same over IPv6: AWS, Google, and the link-local ones of OpenStack. */
export const closedNetworks6: readonly string[] = ["fd00:ec2::254/128", "fd20:ce::254/128", "fe80::a9fe:a9fe/128"];
