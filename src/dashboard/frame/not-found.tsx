import { Link } from "@tanstack/react-router";
import { Page } from "../ui/page.tsx";

export function NotFound() {
  return (
    <Page title="Not found">
      <p className="text-muted">
        Nothing is at this address.{" "}
        <Link to="/" className="text-accent underline underline-offset-2">
          Go to the overview
        </Link>
      </p>
    </Page>
  );
}
