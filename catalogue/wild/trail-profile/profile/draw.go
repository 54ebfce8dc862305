// Package profile draws the elevation along a trail.
package profile

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

const (
	width  = 900.0
	height = 220.0
	window = 30 // samples to each side
)

// Draw returns the SVG of heights that were taken at even distances.
func Draw(trail string, heights []int16) []byte {
	line := smooth(heights)
	low, high := line[0], line[0]
	climb := 0.0
	for i, h := range line {
		low, high = math.Min(low, h), math.Max(high, h)
		if i > 0 && h > line[i-1] {
			climb += h - line[i-1]
		}
	}
	var svg bytes.Buffer
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g">`, width, height)
	fmt.Fprintf(&svg, `<title>%s: %.0f m to %.0f m, %.0f m of climb</title><path fill="none" stroke="#274" d="`,
		trail, low, high, climb)
	command := byte('M')
	for _, i := range simplify(line, (high-low)/400) {
		svg.WriteByte(command)
		svg.WriteString(strconv.FormatFloat(width*float64(i)/float64(len(line)-1), 'f', 1, 64))
		svg.WriteByte(' ')
		svg.WriteString(strconv.FormatFloat(height*(high-line[i])/(high-low+1), 'f', 1, 64))
		command = 'L'
	}
	svg.WriteString(`"/></svg>`)
	return svg.Bytes()
}

// smooth removes the steps of the terrain grid with a Gaussian window.
func smooth(heights []int16) []float64 {
	var weights [2*window + 1]float64
	for i := range weights {
		d := float64(i-window) / (window / 2.5)
		weights[i] = math.Exp(-d * d / 2)
	}
	out := make([]float64, len(heights))
	for i := range heights {
		sum, of := 0.0, 0.0
		for j, weight := range weights {
			if at := i + j - window; at >= 0 && at < len(heights) {
				sum += weight * float64(heights[at])
				of += weight
			}
		}
		out[i] = sum / of
	}
	return out
}

// simplify returns the points to keep so that the line is off by at most tolerance (Douglas and Peucker).
func simplify(line []float64, tolerance float64) []int {
	keep := []int{0}
	var split func(from, to int)
	split = func(from, to int) {
		slope := (line[to] - line[from]) / float64(to-from)
		worst, at := tolerance, -1
		for i := from + 1; i < to; i++ {
			if off := math.Abs(line[from] + slope*float64(i-from) - line[i]); off > worst {
				worst, at = off, i
			}
		}
		if at < 0 {
			keep = append(keep, to)
			return
		}
		split(from, at)
		split(at, to)
	}
	split(0, len(line)-1)
	return keep
}
