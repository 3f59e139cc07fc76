import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Page } from "../ui/page.tsx";

export function NotFound({ children = "Nothing is at this address." }: { readonly children?: ReactNode }) {
  return (
    <Page title="Not found">
      <p className="text-muted">
        {children}{" "}
        <Link to="/" className="text-accent underline underline-offset-2">
          Go to the overview
        </Link>
      </p>
    </Page>
  );
}
