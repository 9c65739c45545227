// Draws the charts of a page with D3: draw_charts(element, charts). Each <figure data-section> inside the element has its
// chart's description among `charts`, in a report's file those of its JSON; its "kind" names the function below. All marks
// carry the value that they show, so a reader (or a test) can get back to the number. Without D3 nothing is drawn and the
// tables stay.
"use strict";
var draw_charts = (() => {
  if (typeof d3 === "undefined") return () => {};

  const width = 1072, line = 26;
  const scales = {
    s: [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]],
    B: [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]],
  };
  /// The unit that puts `value` in [1, 1000), as {factor, name}.
  const unit_for = (unit, value) => {
    const list = scales[unit];
    if (!list) return {factor: 1, name: unit};
    const [factor, name] = list.find(([size]) => value >= size) || list[list.length - 1];
    return {factor, name};
  };
  const shown = (value, unit) => {
    const u = unit_for(unit, Math.abs(value));
    return `${d3.format(".4r")(value / u.factor)} ${u.name}`;
  };
  const percent = d3.format("+.1%");
  const colour = name => `var(--${name})`;
  const space_for = texts => Math.min(330, 12 + 6.8 * d3.max(texts, t => t.length));

  const canvas = (figure, height, name) => d3.select(figure).append("svg")
    .attr("viewBox", [0, 0, width, height]).attr("tabindex", 0).attr("role", "group")
    .attr("aria-label", `${name}. Arrow keys walk through its marks.`);
  const legend = (figure, entries) => d3.select(figure).append("div").attr("class", "legend")
    .selectAll("span").data(entries).join("span")
    .html(e => `<i style="background:${e.colour}"></i>`).append("b").style("font-weight", 400).text(e => e.name);
  /// Marks: they say what they show, and hold its value.
  const mark = (selection, value, says) => selection.classed("mark", true).attr("data-value", value)
    .append("title").text(says);
  const axis = (svg, made, x, y) => svg.append("g").attr("class", "axis").attr("transform", `translate(${x},${y})`).call(made);
  const grid = (svg, made, x, y) => svg.append("g").attr("class", "grid").attr("transform", `translate(${x},${y})`)
    .call(made.tickFormat("").tickSizeOuter(0));
  const axis_title = (svg, text, x, y, anchor = "end") =>
    svg.append("text").attr("class", "quiet").attr("x", x).attr("y", y).attr("text-anchor", anchor).text(text);

  /// Stacked horizontal bars, with the interval of their total, against a limit.
  function bars(figure, c, name) {
    const left = space_for(c.rows.map(r => r.label)), right = 92, top = 6;
    const bottom = top + line * c.rows.length;
    const most = d3.max(c.rows, r => Math.max(r.total, r.high || 0));
    const near = c.limit && c.limit.value <= 4 * most;
    const unit = unit_for(c.unit, most);
    const end = near ? Math.max(most, c.limit.value) * 1.02 : most * 1.02;
    const x = d3.scaleLinear().domain([0, end / unit.factor]).range([left, width - right]);
    const at = value => x(value / unit.factor);
    legend(figure, c.series.map(s => ({name: s.name, colour: colour(s.colour)})));
    const svg = canvas(figure, bottom + (c.limit ? 40 : 26), name);
    grid(svg, d3.axisBottom(x).tickSize(bottom - top), 0, top);
    axis(svg, d3.axisBottom(x).tickSizeOuter(0), 0, bottom);
    axis_title(svg, unit.name, width - right + 8, bottom + 18, "start");
    c.rows.forEach((row, i) => {
      const y = top + line * i + 4, height = line - 8;
      svg.append("text").attr("x", left - 8).attr("y", y + height / 2).attr("dy", ".35em").attr("text-anchor", "end")
        .text(row.label);
      let from = 0;
      row.values.forEach((value, k) => {
        if (value > 0) {
          mark(svg.append("rect").attr("x", at(from)).attr("y", y).attr("height", height)
            .attr("width", Math.max(0.5, at(from + value) - at(from))).attr("fill", colour(c.series[k].colour)),
            value, `${row.label}: ${c.series[k].name} ${shown(value, c.unit)}, ${d3.format(".1%")(value / row.total)} of ${shown(row.total, c.unit)}`);
        }
        from += value;
      });
      if (row.high > row.low) {
        const middle = y + height / 2;
        svg.append("path").attr("class", "interval").attr("data-low", row.low).attr("data-high", row.high)
          .attr("d", `M${at(row.low)},${middle - 4}v8m0,-4H${at(row.high)}m0,-4v8`);
      }
      svg.append("text").attr("x", width - right + 8).attr("y", y + height / 2).attr("dy", ".35em")
        .attr("data-total", row.total).text(shown(row.total, c.unit));
    });
    if (!c.limit) return;
    const text = `${c.limit.name} ${shown(c.limit.value, c.unit)}`;
    if (near) {
      svg.append("path").attr("class", "limit").attr("d", `M${at(c.limit.value)},${top}V${bottom}`);
      axis_title(svg, text, at(c.limit.value), bottom + 34).classed("limit-name", true);
    } else {
      axis_title(svg, `${text}: ${d3.format(".3~r")(c.limit.value / most)} times the most used`, left, bottom + 34, "start")
        .classed("limit-name", true);
    }
  }

  /// What streams did when; part of it can be enlarged.
  function timeline(figure, c, name) {
    const left = space_for(c.lanes), right = 30, top = 22, height = 24;
    const bottom = top + line * c.lanes.length;
    const streams = {compute: "attention", other: "merge, convert, accumulate", communication: "communication"};
    legend(figure, Object.entries(streams).map(([key, text]) => ({name: text, colour: colour(key)})));
    const svg = canvas(figure, bottom + 26, name);
    const clip = `clip-${figure.dataset.section}`;
    svg.append("clipPath").attr("id", clip).append("rect").attr("x", left).attr("y", 0)
      .attr("width", width - left - right).attr("height", bottom);
    // Everything is made once and moved afterwards: fingers hold on to the elements that they touched.
    c.lanes.forEach((lane, i) => {
      svg.append("rect").attr("x", left).attr("y", top + line * i + 1).attr("width", width - left - right)
        .attr("height", height).attr("fill", "var(--lane)");
      svg.append("text").attr("x", left - 8).attr("y", top + line * i + line / 2).attr("dy", ".35em")
        .attr("text-anchor", "end").text(lane);
    });
    const inside = svg.append("g").attr("clip-path", `url(#${clip})`);
    const operations = inside.selectAll("rect").data(c.intervals).join("rect").attr("y", i => top + line * i.lane + 1)
      .attr("height", height).attr("fill", i => colour(i.colour));
    mark(operations, i => i.end - i.start,
      i => `${c.lanes[i.lane]}: ${i.operations > 1 ? `${i.operations} x ` : ""}${i.name}, ${shown(i.end - i.start, c.unit)}, from ${shown(i.start, c.unit)} to ${shown(i.end, c.unit)}`);
    const names = inside.selectAll("text").data(c.intervals).join("text").attr("y", i => top + line * i.lane + line / 2)
      .attr("dy", ".35em").attr("text-anchor", "middle").style("fill", "#fff").style("pointer-events", "none").text(i => i.name);
    const marks = svg.selectAll(null).data(c.marks).join("g");
    marks.append("path").attr("d", `M0,6V${bottom}`).attr("stroke", "var(--faint)").attr("stroke-dasharray", "3 3");
    axis_title(marks, m => m.name, 5, 15, "start");
    const ticks = axis(svg, () => {}, 0, bottom), ticks_unit = axis_title(svg, "", width - right + 8, bottom + 18, "start");

    let domain = [0, c.end];
    const all = d3.scaleLinear().domain(domain).range([left, width - right]);
    const gap = w => w > 4 ? w - 0.5 : Math.max(w, 0.6);
    const draw = () => {
      const unit = unit_for(c.unit, domain[1]);
      const x = d3.scaleLinear().domain(domain.map(t => t / unit.factor)).range([left, width - right]);
      const at = t => x(t / unit.factor), room = i => at(i.end) - at(i.start);
      const show_if = (selection, visible) => selection.style("display", d => visible(d) ? null : "none").filter(visible);
      const is_visible = i => i.end >= domain[0] && i.start <= domain[1];
      show_if(operations.classed("mark", is_visible), is_visible).attr("x", i => at(i.start)).attr("width", i => gap(room(i)));
      show_if(names, i => is_visible(i) && room(i) > 7.2 * i.name.length + 8).attr("x", i => (at(i.start) + at(i.end)) / 2);
      show_if(marks, m => at(m.at) >= left - 1 && at(m.at) <= width - right).attr("transform", m => `translate(${at(m.at)},0)`);
      ticks.call(d3.axisBottom(x).tickSizeOuter(0));
      ticks_unit.text(unit.name);
    };
    // A wheel enlarges the chart that has the focus (or any with Ctrl, as pinched touchpads say), so that a page still scrolls;
    // two fingers enlarge it, one moves what is enlarged.
    const event_of = given => d3.event || given;  // version 5 has it there
    const is_enlarged = () => domain[1] - domain[0] < 0.999 * c.end;
    const zooming = d3.zoom().extent([[left, 0], [width - right, bottom]]).translateExtent([[left, 0], [width - right, bottom]])
      .scaleExtent([1, 1e5])
      .filter(given => {
        const e = event_of(given);
        if (e.type === "wheel") return e.ctrlKey || document.activeElement === svg.node();
        return e.type.startsWith("touch") && (e.touches.length > 1 || is_enlarged());
      })
      .on("zoom", given => {
        domain = event_of(given).transform.rescaleX(all).domain();
        draw();
      });
    svg.call(zooming).on("dblclick.zoom", null).style("touch-action", "pan-x pan-y");
    const show = (from, to) => {
      const span = Math.min(Math.max(to - from, c.end * 1e-5), c.end);
      const start = Math.min(Math.max(from, 0), c.end - span), scale = c.end / span;
      svg.call(zooming.transform, d3.zoomIdentity.translate(left - scale * all(start), 0).scale(scale));
    };
    const zoom = factor => {
      const middle = (domain[0] + domain[1]) / 2, half = (domain[1] - domain[0]) / 2 * factor;
      show(middle - half, middle + half);
    };
    const pan = share => {
      const by = share * (domain[1] - domain[0]);
      show(domain[0] + by, domain[1] + by);
    };
    const time_at = event => {
      const box = svg.node().getBoundingClientRect();
      const share = ((event.clientX - box.left) / box.width * width - left) / (width - left - right);
      return domain[0] + Math.min(Math.max(share, 0), 1) * (domain[1] - domain[0]);
    };
    svg.node().addEventListener("mousedown", e => {
      const pressed = time_at(e);
      e.preventDefault();
      svg.node().focus();
      window.addEventListener("mouseup", released => {
        const other = time_at(released), [from, to] = [Math.min(pressed, other), Math.max(pressed, other)];
        if (to - from > (domain[1] - domain[0]) / 100) show(from, to);
      }, {once: true});
    });
    svg.node().addEventListener("dblclick", () => show(0, c.end));
    svg.node().addEventListener("keydown", e => {
      const act = {"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Home: () => show(0, c.end),
        PageUp: () => pan(-0.5), PageDown: () => pan(0.5)}[e.key];
      if (!act) return;
      e.preventDefault();
      act();
    });
    draw();
  }

  /// Texts at the right end of lines, pushed apart but not below `bottom`.
  const spread = (places, gap, bottom) => {
    places.sort((a, b) => a.y - b.y);
    places.forEach((p, i) => { if (i) p.y = Math.max(p.y, places[i - 1].y + gap); });
    let most = bottom;
    for (const p of places.slice().reverse()) {
      p.y = Math.min(p.y, most);
      most = p.y - gap;
    }
    return places;
  };

  /// Time against a quantity, a line a candidate: as multiples of the best where times span much.
  function lines(figure, c, name) {
    const left = 60, right = 30 + space_for(c.lines.map(l => l.name)), top = 24, bottom = 340;
    const all = c.lines.flatMap(l => l.values).filter(v => v !== null);
    const best = c.values.map((_, i) => d3.min(c.lines, l => l.values[i] === null ? undefined : l.values[i]));
    const relative = d3.max(best) > 20 * d3.min(best);
    const unit = relative ? {factor: 1, name: "times the best"} : unit_for(c.unit, d3.max(all));
    const drawn = (v, i) => relative ? v / best[i] : v / unit.factor;
    const ys = c.lines.flatMap(l => l.values.map((v, i) => v === null ? null : drawn(v, i))).filter(v => v !== null);
    const cap = relative ? Math.min(d3.max(ys), 4) : d3.max(ys);
    const x = d3.scalePoint().domain(c.values).range([left, width - right]).padding(0.4);
    const least = d3.min(ys);
    const y = (cap > 5 * least ? d3.scaleLog() : d3.scaleLinear()).domain([least - 0.03 * (cap - least), cap + 0.03 * (cap - least)]).range([bottom, top]);
    const palette = i => d3.schemeTableau10[i % 10];
    const svg = canvas(figure, bottom + 46, name);
    const round = t => cap <= 5 * least || "125".includes(t.toExponential()[0]);
    const ticks = y.ticks(6).filter(round);
    grid(svg, d3.axisLeft(y).tickValues(ticks).tickSize(-(width - right - left)), left, 0);
    axis(svg, d3.axisLeft(y).tickValues(ticks).tickFormat(d3.format(".3~r")), left, 0);
    axis(svg, d3.axisBottom(x), 0, bottom);
    axis_title(svg, unit.name, left, top - 10, "middle");
    axis_title(svg, c.of, width - right, bottom + 40);
    if (c.asked >= 0) {
      svg.append("path").attr("d", `M${x(c.values[c.asked])},${top}V${bottom}`).attr("stroke", "var(--faint)").attr("stroke-dasharray", "3 3");
      axis_title(svg, "as asked", x(c.values[c.asked]), top - 8, "middle");
    }
    svg.append("clipPath").attr("id", `clip-${figure.dataset.section}`).append("rect").attr("x", 0).attr("y", top - 6)
      .attr("width", width).attr("height", bottom - top + 12);
    const inside = svg.append("g").attr("clip-path", `url(#clip-${figure.dataset.section})`);
    const ends = [];
    c.lines.forEach((l, k) => {
      const points = l.values.map((v, i) => ({v, i})).filter(p => p.v !== null);
      if (points.length === 0) return;
      inside.append("path").attr("fill", "none").attr("stroke", palette(k)).attr("stroke-width", 2)
        .attr("stroke-dasharray", k < 10 ? null : "6 3")
        .attr("d", d3.line().x(p => x(c.values[p.i])).y(p => y(drawn(p.v, p.i)))(points));
      mark(inside.selectAll(null).data(points).join("circle").attr("cx", p => x(c.values[p.i]))
        .attr("cy", p => y(drawn(p.v, p.i))).attr("r", 3.5).attr("fill", palette(k)), p => p.v,
        p => `${l.name} at ${c.values[p.i]} ${c.of}: ${shown(p.v, c.unit)}, ${d3.format(".3r")(p.v / best[p.i])} times the best`);
      const last = points[points.length - 1];
      ends.push({y: Math.max(top, y(Math.min(drawn(last.v, last.i), cap))), name: l.name, colour: palette(k)});
    });
    for (const e of spread(ends, 15, bottom)) {
      svg.append("circle").attr("cx", width - right + 14).attr("cy", e.y).attr("r", 4).attr("fill", e.colour);
      svg.append("text").attr("x", width - right + 24).attr("y", e.y).attr("dy", ".35em").text(e.name);
    }
  }

  const error = r => r.measured ? percent(r.predicted / r.measured - 1) : "";
  const says = (r, c) => `${r.series ? `${r.series}, ` : ""}${r.name}: ${c.measured} ${shown(r.measured, c.unit)}, predicted ${shown(r.predicted, c.unit)} ${error(r) && `(${error(r)})`}`;

  /// A row a figure: measured as a bar, predicted as a point with its interval.
  function pairs(figure, c, name) {
    const label = r => r.series ? `${r.series}: ${r.name}` : r.name;
    const left = space_for(c.rows.map(label)), right = 150, top = 6, bottom = top + line * c.rows.length;
    const most = d3.max(c.rows, r => Math.max(r.measured, r.predicted, r.high || 0));
    const unit = unit_for(c.unit, most);
    const x = d3.scaleLinear().domain([0, most * 1.02 / unit.factor]).range([left, width - right]);
    const at = v => x(v / unit.factor);
    legend(figure, [{name: c.measured, colour: colour("compute-more")}, {name: "predicted", colour: colour("waiting")}]);
    const svg = canvas(figure, bottom + 40, name);
    grid(svg, d3.axisBottom(x).tickSize(bottom - top), 0, top);
    axis(svg, d3.axisBottom(x).tickSizeOuter(0), 0, bottom);
    axis_title(svg, unit.name, width - right + 8, bottom + 18, "start");
    c.rows.forEach((r, i) => {
      const y = top + line * i + line / 2;
      const text = label(r);
      svg.append("text").attr("x", left - 8).attr("y", y).attr("dy", ".35em").attr("text-anchor", "end")
        .text(text.length > 47 ? `${text.slice(0, 46)}…` : text).append("title").text(text);
      mark(svg.append("rect").attr("x", left).attr("y", y - 7).attr("height", 14).attr("width", at(r.measured) - left)
        .attr("fill", colour("compute-more")), r.measured, says(r, c));
      if (r.high > r.low)
        svg.append("path").attr("class", "interval").attr("d", `M${at(r.low)},${y - 4}v8m0,-4H${at(r.high)}m0,-4v8`);
      mark(svg.append("circle").attr("cx", at(r.predicted)).attr("cy", y).attr("r", 5).attr("fill", colour("waiting"))
        .attr("stroke", "var(--back)"), r.predicted, says(r, c));
      svg.append("text").attr("x", width - right + 8).attr("y", y).attr("dy", ".35em")
        .text(`${shown(r.measured, c.unit)}  ${error(r)}`);
    });
  }

  /// Many figures: predicted over measured, with the diagonal and 30 % about it.
  function scatter(figure, c, name) {
    const size = 460, left = 90, top = 16, bottom = top + size, right = left + size;
    const values = c.rows.flatMap(r => [r.measured, r.predicted]).filter(v => v > 0);
    const unit = unit_for(c.unit, d3.max(values));
    const scale = d3.scaleLog().domain([d3.min(values) / unit.factor / 1.15, d3.max(values) / unit.factor * 1.15]);
    const x = scale.copy().range([left, right]), y = scale.copy().range([bottom, top]);
    const series = [...new Set(c.rows.map(r => r.series))];
    const palette = s => d3.schemeTableau10[series.indexOf(s) % 10];
    const svg = canvas(figure, bottom + 46, name);
    const [low, high] = scale.domain();
    svg.append("clipPath").attr("id", `clip-${figure.dataset.section}`).append("rect").attr("x", left).attr("y", top)
      .attr("width", size).attr("height", size);
    const inside = svg.append("g").attr("clip-path", `url(#clip-${figure.dataset.section})`);
    inside.append("path").attr("fill", "var(--lane)")
      .attr("d", `M${x(low)},${y(low * 1.3)}L${x(high)},${y(high * 1.3)}L${x(high)},${y(high * 0.7)}L${x(low)},${y(low * 0.7)}Z`);
    inside.append("path").attr("stroke", "var(--faint)").attr("d", `M${x(low)},${y(low)}L${x(high)},${y(high)}`);
    const few = scale.ticks().length > 12 ? 3 : 8;
    axis(svg, d3.axisBottom(x).ticks(few, ".3~r"), 0, bottom);
    axis(svg, d3.axisLeft(y).ticks(few, ".3~r"), left, 0);
    axis_title(svg, `${c.measured}, ${unit.name}`, right, bottom + 40);
    svg.append("text").attr("class", "quiet").attr("transform", `translate(${left - 56},${top})rotate(-90)`)
      .attr("text-anchor", "end").text(`predicted, ${unit.name}`);
    c.rows.forEach(r => {
      if (r.high > r.low) inside.append("path").attr("class", "interval")
        .attr("d", `M${x(r.measured / unit.factor)},${y(r.low / unit.factor)}V${y(r.high / unit.factor)}`);
    });
    mark(inside.selectAll("circle").data(c.rows).join("circle").attr("cx", r => x(r.measured / unit.factor))
      .attr("cy", r => y(r.predicted / unit.factor)).attr("r", 4).attr("fill", r => palette(r.series))
      .attr("fill-opacity", 0.8), r => r.predicted, r => says(r, c));

    // To the right: how far off, by series; their names are the legend of both.
    const begin = right + space_for(series) + 40, until = width - 20, rows = series.length;
    const step = Math.min(30, size / rows), foot = top + step * rows + 8;
    const off = r => r.predicted / r.measured - 1;
    const most = Math.max(0.35, d3.max(c.rows, r => Math.abs(off(r))));
    const e = d3.scaleLinear().domain([-most, most]).range([begin, until]).nice();
    svg.append("rect").attr("x", e(-0.3)).attr("y", top).attr("width", e(0.3) - e(-0.3)).attr("height", foot - top)
      .attr("fill", "var(--lane)");
    svg.append("path").attr("stroke", "var(--faint)").attr("d", `M${e(0)},${top}V${foot}`);
    axis(svg, d3.axisBottom(e).ticks(Math.max(2, (until - begin) / 75), "+.0%"), 0, foot);
    axis_title(svg, "error of the prediction; shaded: within 30 %", until, foot + 36);
    series.forEach((s, i) => {
      const middle = top + step * (i + 0.5) + 4;
      svg.append("text").attr("x", begin - 12).attr("y", middle).attr("dy", ".35em").attr("text-anchor", "end")
        .text(s.length > 47 ? `${s.slice(0, 46)}…` : s);
      svg.selectAll(null).data(c.rows.filter(r => r.series === s)).join("circle").attr("cx", r => e(off(r)))
        .attr("cy", middle).attr("r", 3.5).attr("fill", palette(s)).attr("fill-opacity", 0.7).append("title").text(r => says(r, c));
    });
  }

  /// Values by two sides: the darker the lower, up to four times the least.
  function map(figure, c, name) {
    const left = 60, top = 34, size = Math.min(64, (width - left - 20) / c.sides.length), height = Math.min(size, 40);
    const least = d3.min(c.cells, cell => cell.value);
    const shade = d3.scaleLog().domain([least, 4 * least]).range([1, 0.12]).clamp(true);
    const svg = canvas(figure, top + height * c.sides.length + 6, name);
    axis_title(svg, `${c.rows} down, ${c.columns} across`, 4, 12, "start");
    c.sides.forEach((side, i) => {
      axis_title(svg, side, left + size * (i + 0.5), top - 8, "middle");
      axis_title(svg, side, left - 10, top + height * (i + 0.5) + 4);
    });
    for (const cell of c.cells) {
      const x = left + size * cell.column, y = top + height * cell.row;
      const best = cell.value === least;
      mark(svg.append("rect").attr("x", x + 1).attr("y", y + 1).attr("width", size - 2).attr("height", height - 2)
        .attr("fill", colour("compute")).attr("fill-opacity", shade(cell.value))
        .attr("stroke", best ? "var(--text)" : "none").attr("stroke-width", 2), cell.value,
        `${c.rows} = ${c.sides[cell.row]}, ${c.columns} = ${c.sides[cell.column]}: ${cell.name}, ${shown(cell.value, c.unit)}, ${d3.format(".3r")(cell.value / least)} times the best`);
      if (size >= 44) {
        svg.append("text").attr("x", x + size / 2).attr("y", y + height / 2).attr("dy", ".35em").attr("text-anchor", "middle")
          .style("pointer-events", "none").style("fill", shade(cell.value) > 0.5 ? "#fff" : null)
          .text(`${d3.format(".3~r")(cell.value / least)}×`);
      }
    }
  }

  /// Under each chart a line says what the mark shows that the mouse or the arrow keys are on.
  function walk(figure) {
    const svg = figure.querySelector("svg"), caption = figure.appendChild(document.createElement("figcaption"));
    caption.setAttribute("aria-live", "polite");
    let current = null;
    const show = found => {
      if (current) current.classList.remove("current");
      current = found;
      current.classList.add("current");
      caption.textContent = current.querySelector("title").textContent;
    };
    svg.addEventListener("mouseover", e => {
      const found = e.target.closest(".mark");
      if (found) show(found);
    });
    svg.addEventListener("keydown", e => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
      if (!step) return;
      e.preventDefault();
      const marks = [...svg.querySelectorAll(".mark")], at = marks.indexOf(current);
      show(marks[at < 0 ? 0 : (at + step + marks.length) % marks.length]);
    });
  }

  const kinds = {bars, timeline, lines, pairs, scatter, map};
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
  return (element, charts) => {
    for (const figure of element.querySelectorAll("figure[data-section]")) {
      const chart = charts[figure.dataset.section], section = figure.parentElement;
      kinds[chart.kind](figure, chart, section.querySelector("h2, h3").textContent);
      walk(figure);
      const rows = section.querySelector("details");
      if (rows) rows.open = false;
    }
  };
})();
if (document.getElementById("data")) {
  draw_charts(document, JSON.parse(document.getElementById("data").textContent).charts);
}
