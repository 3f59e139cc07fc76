const create = document.createElement.bind(document);

/**
 * Lets a library create `<style>` elements and `style` attributes, which the page's policy forbids: its sheets are adopted, and its
 * attributes are set through the element's style. Both are allowed, because no markup can do it. Returns a function that ends this.
 */
export function adoptStyles(): () => void {
  document.createElement = createElement as Document["createElement"];
  return () => void (document.createElement = create);
}

function createElement(tag: string, options?: ElementCreationOptions): HTMLElement {
  if (tag === "style") return adoptedStyle();
  const element = create(tag, options);
  if (tag !== "span") return element;
  const setAttribute = element.setAttribute.bind(element);
  element.setAttribute = (name, value) =>
    name === "style" ? void (element.style.cssText = value) : setAttribute(name, value);
  return element;
}

/** Creates an element whose text is a style sheet of the page until it is removed. */
function adoptedStyle(): HTMLElement {
  const sheet = new CSSStyleSheet();
  const element = create("template");
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", {
    set(text: string) {
      sheet.replaceSync(text);
    },
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
