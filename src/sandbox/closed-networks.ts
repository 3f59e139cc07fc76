/**
 * Addresses of cloud services that act with the machine's credentials for any program on it: link-local (nearly all clouds), Azure's
 * WireServer and Alibaba's metadata service.
 */
export const closedNetworks: readonly string[] = ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32"];

/** The same over IPv6: AWS, Google, and OpenStack's link-local address. */
export const closedNetworks6: readonly string[] = ["fd00:ec2::254/128", "fd20:ce::254/128", "fe80::a9fe:a9fe/128"];
