import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Input } from "./field.tsx";

/** The search of a page whose list can be filtered. */
export interface FilterSearch {
  readonly q?: string;
}

/** Where the text is typed that the page's list is filtered by. */
export function FilterBox({ label }: { readonly label: string }) {
  const filter = useFilter();
  const navigate = useNavigate();
  const box = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(filter);
  // The address follows what is typed a moment later; what changes it otherwise, such as a link, changes the box.
  useEffect(() => {
    if (document.activeElement !== box.current) setText(filter);
  }, [filter]);
  return (
    <Input
      ref={box}
      type="search"
      aria-label={label}
      placeholder="Filter"
      data-search
      className="max-w-64"
      value={text}
      onChange={({ target: { value } }) => {
        setText(value);
        void navigate({ to: ".", search: value === "" ? {} : { q: value }, replace: true, resetScroll: false });
      }}
    />
  );
}

/** That text, as the address has it. */
export function useFilter(): string {
  const { q = "" }: FilterSearch = useSearch({ strict: false });
  return `${q}`;
}
