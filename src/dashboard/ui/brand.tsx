/** The mark: a bollard's ring and anchor in the accent colour. */
export function Brand({ size = 22 }: { readonly size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" role="img" aria-label="Berth">
      <rect width="32" height="32" rx="8" className="fill-accent" />
      <g fill="none" className="stroke-on-accent" strokeWidth="2.4" strokeLinecap="round" strokeLinejoin="round">
        <circle cx="16" cy="8.8" r="2.6" />
        <path d="M16 11.4V25M10.8 15h10.4M7.2 18.500C7.600 22.600 11 25 16 25s8.400-2.400 8.800-6.500" />
      </g>
    </svg>
  );
}
