"""Reports as text, boxes, trees, HTML, SVG, Mermaid and Graphviz."""
