import { Link } from "@tanstack/react-router";

interface CompareLinkProps {
  readonly slug: string;
  /** The number of the deployment that serves. */
  readonly serving: number;
  /** What failed: a build, and its deployment if it led to one. */
  readonly build: { readonly number: number; readonly deployment: { readonly number: number } | null };
}

/** Leads to what differs between what serves and what failed. */
export function CompareLink({ slug, serving, build: { number, deployment } }: CompareLinkProps) {
  const other = deployment === null ? { build: number } : { to: deployment.number };
  return (
    <Link
      to="/projects/$slug/compare"
      params={{ slug }}
      search={{ from: serving, ...other }}
      className="font-medium whitespace-nowrap text-accent underline underline-offset-2"
    >
      Compare #{serving} → {deployment === null ? `build ${number}` : `#${deployment.number}`}
    </Link>
  );
}
