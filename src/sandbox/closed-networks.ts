/** Addresses of cloud services that act with the machine's credentials: link-local ones, Azure's WireServer and Alibaba's. */
export const closedNetworks: readonly string[] = ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32"];

/** The same over IPv6: AWS, Google, and OpenStack's link-local address. */
export const closedNetworks6: readonly string[] = ["fd00:ec2::254/128", "fd20:ce::254/128", "fe80::a9fe:a9fe/128"];

/** The operator's own networks (RFC 1918, RFC 6598), closed to tenants' code except for those that BERTH_TENANT_NETWORKS opens. */
export const privateNetworks: readonly string[] = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16"];

/** The same over IPv6: unique local and link-local addresses. */
export const privateNetworks6: readonly string[] = ["fc00::/7", "fe80::/10"];
