package saddles;

import java.math.BigDecimal;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

@RestController
class OrderController {
    private static final Map<String, BigDecimal> FEET =
            Map.of("general", new BigDecimal("14.5"), "dressage", new BigDecimal("16"), "jump", new BigDecimal("13"));

    private final OrderDesk desk;

    OrderController(OrderDesk desk) {
        this.desk = desk;
    }

    @GetMapping("/orders/place")
    OrderDesk.Placed place(@RequestParam String saddle, @RequestParam(defaultValue = "bridle") String grade) {
        BigDecimal feet = FEET.get(saddle);
        if (feet == null) {
            throw new ResponseStatusException(HttpStatus.BAD_REQUEST, "no such saddle");
        }
        return desk.place(grade, feet);
    }

    @GetMapping("/saddles")
    Map<String, BigDecimal> saddles() {
        return FEET;
    }
}
