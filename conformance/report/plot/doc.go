// Package plot draws what a comparison of layers over positions found, as SVG or
// PNG: it is the only importer of gonum's plotting library. It takes plain numbers
// and judges nothing.
package plot
