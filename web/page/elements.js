// Elements of the page, made in one call: element("button", {type: "button", onclick: act}, "Cancel").
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

export const by_id = id => document.getElementById(id);

/// What a table's rows of texts show; the first row is the header.
export const table = rows => element("div", {class: "rows", tabindex: 0, role: "group", "aria-label": "Table"},
  element("table", {},
    element("thead", {}, element("tr", {}, ...rows[0].map(text => element("th", {scope: "col"}, text)))),
    element("tbody", {}, ...rows.slice(1).map(row => element("tr", {}, ...row.map(text => element("td", {}, text)))))));

/// Saves a text as a file of the user.
export function save(name, text, type) {
  const link = element("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
