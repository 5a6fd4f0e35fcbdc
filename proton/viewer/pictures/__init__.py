"""Pictures of a run: timelines, flame graphs, histograms, heat maps, occupancy."""
