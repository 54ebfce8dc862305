// Package plans computes watering plans of a farm's valves.
package plans

import (
	"fmt"
	"math"
)

// Valve is one valve of a field.
type Valve struct {
	ID     int     `json:"id"`
	Zone   string  `json:"zone"`
	Litres float64 `json:"litres_per_minute"`
}

// Slot is a time in which a valve is open.
type Slot struct {
	Valve   int     `json:"valve"`
	Start   string  `json:"start"`
	Minutes float64 `json:"minutes"`
}

// Field has an id and valves.
type Field struct {
	ID     int     `json:"id"`
	Valves []Valve `json:"valves"`
}

var zones = []string{"orchard", "greenhouse", "meadow", "terrace"}

// Fields makes the farm's fields.
func Fields(count int) map[int]Field {
	fields := make(map[int]Field, count)
	for id := 1; id <= count; id++ {
		field := Field{ID: id}
		for v := range 24 {
			field.Valves = append(field.Valves, Valve{ID: id*100 + v, Zone: zones[v%len(zones)], Litres: 8 + float64(id*v%17)})
		}
		fields[id] = field
	}
	return fields
}

// Plan works out when the valves of a zone open; all zones if it is empty.
func Plan(field Field, zone string, rain, heat float64) []Slot {
	var slots []Slot
	at := 4 * 60.0
	for _, valve := range field.Valves {
		if zone != "" && valve.Zone != zone {
			continue
		}
		need := 0.0
		for hour := range 24 {
			sun := math.Max(0, math.Sin(math.Pi*(float64(hour)-5)/15))
			need += sun * heat * 0.9 * math.Exp(-float64(valve.ID%7)/20)
		}
		minutes := math.Max(2, (need*6-rain*10)/valve.Litres)
		slots = append(slots, Slot{valve.ID, fmt.Sprintf("%02d:%02d", int(at)/60%24, int(at)%60), math.Round(minutes*10) / 10})
		at += minutes
	}
	return slots
}
